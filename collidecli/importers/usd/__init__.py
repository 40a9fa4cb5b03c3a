"""OpenUSD: stages to scenes and motions, a module a subject; `scene` is the door."""
