"""Reading and writing of tables: frames of several libraries, arrays and files behind one interface."""
