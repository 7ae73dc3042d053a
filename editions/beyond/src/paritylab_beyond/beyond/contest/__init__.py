"""Which optimiser learns parities fastest? Twelve of them on nine parities and three networks, each at its best rate.

What is measured and by which rule is in :mod:`.design`, fixed before anything was run; docs/optimisers.md tells
it in words. :func:`.table.place` measures one of your own in the same way, :func:`.table.beside` ranks it with the
published ones.
"""
