import json
import pathlib
import tempfile
import unittest

from journal import Journal


class JournalTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name) / "journal.ndjson"
        self.journal = Journal(self.path)
        self.addCleanup(self.journal.file.close)

    def lines(self):
        return [json.loads(line) for line in self.path.read_text().splitlines()]

    def test_a_change_is_in_the_file_when_it_counts(self):
        self.journal.order_batch("acme", ["1", "2"], 10)
        self.assertEqual(self.journal.total, 2)
        self.assertEqual(self.lines()[0]["orders"], ["1", "2"])

    def test_the_last_version_of_an_order_counts(self):
        self.journal.order_batch("acme", ["1"], 10)
        self.journal.order_batch("acme", ["1"], 20)
        self.assertEqual(self.journal.orders, {("acme", "1"): 20})

    def test_a_unit_in_two_returns_is_found(self):
        unit = ("order", "A", 1)
        self.assertEqual(self.journal.new_return("acme", "RMA-1", [unit]), [])
        self.assertEqual(self.journal.new_return("acme", "RMA-2", [unit]), [unit])

    def test_a_canceled_return_frees_its_units(self):
        unit = ("order", "A", 1)
        self.journal.new_return("acme", "RMA-1", [unit])
        self.journal.canceled("acme", "RMA-1", [unit])
        self.assertEqual(self.journal.new_return("acme", "RMA-2", [unit]), [])
        events = self.journal.events["rma-engine", "acme", "rma:RMA-1"]
        self.assertEqual(dict(events), {"rma.created": 1, "rma.canceled": 1})

    def test_messages_of_other_services_are_expected_but_are_no_changes(self):
        self.journal.caused("rma-engine", "acme", "rma:RMA-1", "rma.received")
        self.assertEqual(self.journal.total, 0)
        self.assertEqual(self.journal.events["rma-engine", "acme", "rma:RMA-1"]["rma.received"], 1)


if __name__ == "__main__":
    unittest.main()
