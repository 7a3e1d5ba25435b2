"""The dashboards, one file each; `panels` holds what they are made of."""
