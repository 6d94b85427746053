"""The command line, run by ``python -m shoal``."""

from shoal.cli import main

if __name__ == "__main__":
    main()
