// Nothing but the precompiled header of this build.
