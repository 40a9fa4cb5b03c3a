"""Importer of OpenUSD stages; `scene.add_usd` is the entry point."""
