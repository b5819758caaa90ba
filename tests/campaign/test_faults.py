import asyncio
import types
import unittest

from faults import LONGEST_REST, REPUBLISH_MARGIN, REST, Faults, rest_after, utc


class Rests(unittest.TestCase):
    def test_only_a_fault_that_took_longer_than_planned_delays_the_next(self):
        self.assertEqual([rest_after(delay) for delay in (0, 0.5, 2, 10, 100)], [0, 0, REST, 10, LONGEST_REST])


class Republishing(unittest.TestCase):
    def test_a_second_wipe_stops_the_request_of_the_first_and_covers_its_period(self):
        asyncio.run(self.wipe_twice())

    async def wipe_twice(self):
        requests, projected_at = [], iter([1000.0, 2000.0])

        async def call(service, method, path, body, *_):
            requests.append((method, path, body))
            await asyncio.sleep(0)
            return types.SimpleNamespace(status=202, json=lambda: {"state": "running"})

        async def wipe():
            pass

        stack = types.SimpleNamespace(
            probes=types.SimpleNamespace(last_projected_at=lambda: next(projected_at)),
            broker=types.SimpleNamespace(wipe=wipe),
            client=types.SimpleNamespace(call=call),
            operator_token="token",
        )
        faults = Faults(stack, violations=None, say=None)
        await faults.broker_wipe(None)
        first = faults.republishing
        await asyncio.sleep(0)
        await faults.broker_wipe(None)
        await asyncio.gather(first, return_exceptions=True)
        self.assertTrue(first.cancelled())
        self.assertEqual(faults.background, [faults.republishing])
        await asyncio.sleep(0)
        started = [body["since"] for method, _, body in requests if method == "POST" and body]
        self.assertEqual(set(started), {utc(1000.0 - REPUBLISH_MARGIN)})
        faults.republishing.cancel()


if __name__ == "__main__":
    unittest.main()
