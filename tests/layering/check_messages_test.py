"""What tools/check_messages.py finds, and what it lets pass."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

from check_messages import mistakes  # noqa: E402


class CheckMessagesTest(unittest.TestCase):
    def lines(self, text):
        return [number for number, _ in mistakes(text)]

    def test_finds_each_habit(self):
        self.assertEqual(self.lines('a("x is no number");\nb("these are no sizes");\nc("0 stands twice");\nd("it is none");'), [1, 2, 3, 4])

    def test_lets_plain_sentences_and_comments_pass(self):
        self.assertEqual(self.lines('a("there is no pass add");\nb("it is no longer there");\n// "x is no number"\nc("is not a number");'), [])


if __name__ == "__main__":
    unittest.main()
