"""Exporters: contact sets as tables, as arrays in other programs' layouts, and as USD layers."""
