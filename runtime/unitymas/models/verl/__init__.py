"""The door to verl: the only package that imports it. Nothing is imported here, so that a frozen model pays nothing."""
