"""Tables in and out: frames of several libraries, arrays and files behind one interface."""
