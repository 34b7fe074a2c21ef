"""Texts of containers: as IPython writes them."""

import random
import unittest

from IPython.lib.pretty import pretty

from _sandglass.rich.text import describe


def random_value(rng, depth):
    kind = rng.randrange(8 if depth else 4)
    if kind == 0:
        return rng.randrange(10 ** rng.randrange(1, 12))
    if kind == 1:
        return "x" * rng.randrange(40)
    if kind == 2:
        return rng.random()
    if kind == 3:
        return None
    items = [random_value(rng, depth - 1) for _ in range(rng.randrange(9))]
    if kind == 4:
        return tuple(items)
    if kind == 5:
        return {f"key{index}": item for index, item in enumerate(items)}
    return items


class Pretty(unittest.TestCase):
    def test_random_values(self):
        rng = random.Random(4)
        for _ in range(1500):
            value = random_value(rng, 4)
            self.assertEqual(describe(value), pretty(value), value)

    def test_at_the_edge_of_the_line(self):
        for length in range(60, 90):
            for value in ([length, "x" * length], {"a": [1, "x" * length]}, [["x" * length, 1], 2]):
                self.assertEqual(describe(value), pretty(value))

    def test_long_list(self):
        self.assertEqual(describe(list(range(1500))), pretty(list(range(1500))))

    def test_exactly_the_limit(self):
        self.assertEqual(describe(list(range(1000))), pretty(list(range(1000))))

    def test_long_dict(self):
        value = dict.fromkeys(range(1500), "v")
        self.assertEqual(describe(value), pretty(value))

    def test_texts_of_several_lines(self):
        import numpy

        value = {"a": numpy.arange(4).reshape(2, 2), "b": 1}
        self.assertEqual(describe(value), pretty(value))

    def test_objects_without_a_repr(self):
        class Thing:
            pass

        for value in (Thing(), object(), [Thing(), Thing], {"a": [object()]}, Thing.__init__, len):
            self.assertEqual(describe(value), pretty(value))

    def test_sets(self):
        self.assertEqual(describe({1, 2, 3}), "{1, 2, 3}")
        self.assertEqual(describe(frozenset((1,))), "frozenset({1})")
        self.assertEqual(describe(set(range(50))).count("\n"), 49)


if __name__ == "__main__":
    unittest.main()
