// An object library needs a source; this one carries the precompiled header (graphproof.cmake).
