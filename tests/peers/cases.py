"""The reporting that comparisons with torch share."""


def report(cases, kind):
    """Runs each check of {name: check}, names those that raise, and returns the exit status: 1 if any did."""
    wrong = 0
    for name, check in cases.items():
        try:
            check()
        except Exception as error:  # every case is to be named
            print(f"{name}\n  {type(error).__name__}: {error}")
            wrong += 1
    print(f"{len(cases) - wrong} of {len(cases)} {kind} are as torch has them")
    return 1 if wrong else 0
