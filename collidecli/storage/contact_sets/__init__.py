"""Contact sets: schema, writer, reader, checks."""
