"""Other programs' layouts of contacts: an array for each field, a module for each program."""
