import unittest

from probes import recovery
from report import slowest_recovery


class Recovery(unittest.TestCase):
    def test_the_first_probe_that_began_after_the_fault_counts(self):
        successes = [(90, 91), (99, 103), (104, 105), (106, 107)]
        self.assertEqual(recovery(successes, 100, []), 5)

    def test_there_may_be_none(self):
        self.assertIsNone(recovery([(90, 101)], 100, []))
        self.assertEqual(slowest_recovery([1.0, None]), "none")
        self.assertEqual(slowest_recovery([1.0, 2.04]), "2.0")

    def test_time_with_other_faults_does_not_count(self):
        successes = [(120, 121)]
        self.assertEqual(recovery(successes, 100, [(90, 95), (130, 140)]), 21)
        self.assertEqual(recovery(successes, 100, [(95, 110)]), 11)
        self.assertEqual(recovery(successes, 100, [(105, 115)]), 11)
        self.assertEqual(recovery(successes, 100, [(105, 115), (110, 118)]), 8)
        self.assertEqual(recovery(successes, 100, [(95, 130)]), 0)


if __name__ == "__main__":
    unittest.main()
