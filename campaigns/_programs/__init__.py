"""The parts of the campaign of random programs: writing, running, comparing, shrinking."""
