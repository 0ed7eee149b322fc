"""Tests of registered pieces, built-in or from plug-ins.

    from genodiff.laws import check_method, check_sampler, check_schedule, check_format

    def test_my_method_holds_the_laws():
        check_method("mine")

Each takes the name of a registered piece, tries it on a small simulated case, and raises
`BrokenLaw` with an explanation of the violated property. The tests of genodiff call the same
functions for every built-in piece.
"""

from genodiff.laws.diffusion import check_sampler as check_sampler
from genodiff.laws.diffusion import check_schedule as check_schedule
from genodiff.laws.formats import check_format as check_format
from genodiff.laws.law import BrokenLaw as BrokenLaw
from genodiff.laws.methods import check_method as check_method
