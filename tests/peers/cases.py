"""The reporting that comparisons with torch share."""


def report(cases, kind, judge="torch has"):
    """Runs each check of {name: check}, names those that raise, and returns the exit status: 1 if any did. The last line says who is
    asked."""
    wrong = 0
    for name, check in cases.items():
        try:
            check()
        except Exception as error:  # every case is to be named
            print(f"{name}\n  {type(error).__name__}: {error}")
            wrong += 1
    print(f"{len(cases) - wrong} of {len(cases)} {kind} are as {judge} them")
    return 1 if wrong else 0


class Comparisons:
    """Counts comparisons, and keeps the texts of those that fail."""

    def __init__(self):
        self.count, self.failures = 0, []

    def expect(self, holds, text):
        """Counts a comparison; the text describes its failure."""
        self.count += 1
        if not holds:
            self.failures.append(text)

    def finish(self):
        """Prints failures and how many comparisons hold, and returns the exit status: 1 if one failed."""
        for text in self.failures[:40]:
            print(text)
        print(f"{self.count - len(self.failures)} of {self.count} comparisons hold")
        return 1 if self.failures else 0
