"""Support functions, closest points, bounds and meshes. Every module with device functions imports
this package."""

from collidecli.engine.runtime.deferred_functions import defer_functions

defer_functions()
