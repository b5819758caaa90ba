import unittest

from faults import LONGEST_REST, REST, rest_after


class Faults(unittest.TestCase):
    def test_only_a_fault_that_took_longer_than_planned_delays_the_next(self):
        self.assertEqual([rest_after(delay) for delay in (0, 0.5, 2, 10, 100)], [0, 0, REST, 10, LONGEST_REST])


if __name__ == "__main__":
    unittest.main()
