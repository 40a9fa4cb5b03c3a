"""Names of the options of an audit that it shares with `run`."""

OF_SELF_CONTACTS = ("self_contacts", "self_contact_rings", "self_contact_rest")
"""Of touches of cloths and soft bodies with themselves and each other between frames."""
