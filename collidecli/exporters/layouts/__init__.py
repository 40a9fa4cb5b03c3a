"""Contacts as other programs lay them out, an array a field; a module a program."""
