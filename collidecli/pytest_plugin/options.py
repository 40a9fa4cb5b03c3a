"""Command-line options and the warning of the pytest plugin; imports nothing, as pytest loads it at every start."""

from __future__ import annotations

REGENERATE = {
    "--force-regen": ("force_regen", "Write new baselines where the results differ; such tests fail once."),
    "--regen-all": ("regen_all", "Write new baselines where the results differ; such tests pass."),
}
"""Options and their attribute and help text. pytest-regressions defines them too; they have the same meaning there."""


class ContactsWarning(UserWarning):
    """A warning about a scene or a run."""
