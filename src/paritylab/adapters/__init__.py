"""Models of other libraries as Networks of this one."""
