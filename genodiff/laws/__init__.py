"""The laws of the registries: what a piece must hold, ours or a plug-in's.

    from genodiff.laws import check_method, check_sampler, check_schedule, check_format

    def test_my_method_holds_the_laws():
        check_method("mine")

Each takes the name of a registered piece, tries it on a small made world, and raises `BrokenLaw`
with the law in words. The tests of genodiff call the same functions for every piece of ours.
"""

from genodiff.laws.formats import check_format as check_format
from genodiff.laws.law import BrokenLaw as BrokenLaw
from genodiff.laws.methods import check_method as check_method
from genodiff.laws.samplers import check_sampler as check_sampler
from genodiff.laws.schedules import check_schedule as check_schedule
