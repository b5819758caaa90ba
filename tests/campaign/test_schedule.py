import unittest

import schedule
from schedule import KINDS, SERVER_KINDS, Targets, make_schedule, parse_kinds

TARGETS = Targets(("auth", "auth.2", "exchange", "exchange.2"), ("acme", "slow"), ("one", "two", "three"))


class Schedule(unittest.TestCase):
    def test_the_same_seed_gives_the_same_faults(self):
        first = make_schedule(7, 10, KINDS, TARGETS)
        self.assertEqual(first, make_schedule(7, 10, KINDS, TARGETS))
        self.assertNotEqual(first, make_schedule(8, 10, KINDS, TARGETS))

    def test_ninety_minutes_have_more_than_five_hundred_faults_of_all_kinds(self):
        faults = make_schedule(1, 90, KINDS, TARGETS)
        self.assertGreater(len(faults), 500)
        self.assertEqual({fault.kind for fault in faults}, set(KINDS))

    def test_two_minutes_have_at_least_eight_kinds(self):
        for seed in range(20):
            self.assertGreaterEqual(len({fault.kind for fault in make_schedule(seed, 2, KINDS, TARGETS)}), 8)

    def test_faults_of_a_sequence_follow_each_other_and_end_in_time(self):
        faults = make_schedule(3, 10, KINDS, TARGETS)
        self.assertEqual(faults, sorted(faults, key=lambda fault: fault.at))
        for group in (SERVER_KINDS, schedule.OTHER_KINDS):
            found = [fault for fault in faults if fault.kind in group]
            for fault, following in zip(found, found[1:]):
                self.assertLessEqual(fault.at + fault.duration, following.at + 0.1)
        self.assertLess(max(fault.at + fault.duration for fault in faults), 600)

    def test_only_chosen_kinds_and_known_targets_occur(self):
        faults = make_schedule(3, 10, ("clock", "broker-kill"), TARGETS)
        self.assertEqual({fault.kind for fault in faults}, {"clock", "broker-kill"})
        self.assertTrue(all(fault.target.endswith(".2") for fault in faults if fault.kind == "clock"))
        single = Targets(TARGETS.replicas, TARGETS.merchants, ("one",))
        self.assertEqual({fault.target for fault in make_schedule(3, 10, ("broker-kill",), single)}, {"all"})

    def test_a_list_of_kinds_is_checked(self):
        self.assertEqual(parse_kinds("all"), KINDS)
        self.assertEqual(parse_kinds("stall, reset"), ("reset", "stall"))
        for text in ("", "stall,earthquake"):
            with self.assertRaises(ValueError):
                parse_kinds(text)


if __name__ == "__main__":
    unittest.main()
