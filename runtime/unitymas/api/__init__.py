"""Shapes only: the four resources, records, ports, errors. Imports neither torch, Ray nor kubernetes."""
