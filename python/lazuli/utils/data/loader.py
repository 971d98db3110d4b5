"""DataLoader: batches of a data set, read in this process or by workers."""

import multiprocessing
import weakref

from lazuli.utils.data.collate import OF_BATCHES, default_collate, default_convert, worker_collate
from lazuli.utils.data.datasets import IterableDataset, samples_of
from lazuli.utils.data.samplers import BatchSampler, RandomSampler, SequentialSampler, draw_seed
from lazuli.utils.data.workers import Setup, Workers, _End, _Failure


class _ByIndex:
    """Fetches batches of a data set by index, or single samples without a batch size."""

    def __init__(self, dataset, batched, collate):
        self.dataset, self.batched, self.collate = dataset, batched, collate

    def __call__(self, indices):
        if not self.batched:
            return self.collate(self.dataset[indices])
        if not hasattr(self.dataset, "__getitem__") and self.collate in OF_BATCHES:  # lazuli.data's
            return [OF_BATCHES[self.collate](part) for part in self.dataset.get(list(indices))]
        return self.collate(samples_of(self.dataset, indices))


class _FromStream:
    """Fetches the next batch or sample of a stream; StopIteration at its end."""

    def __init__(self, dataset, batched, collate, drop_last):
        self.samples, self.batched, self.collate, self.drop_last = (iter(dataset), batched, collate,
                                                                    drop_last)

    def __call__(self, indices):
        if not self.batched:
            return self.collate(next(self.samples))
        batch = [sample for _, sample in zip(indices, self.samples)]
        if not batch or (self.drop_last and len(batch) < len(indices)):
            raise StopIteration
        return self.collate(batch)


class _Fetchers:
    """Makes fetchers in this process or in a worker."""

    def __init__(self, loader, collate):
        self.kind = _FromStream if loader._is_stream else _ByIndex
        self.arguments = (loader.dataset, loader._auto_collation, collate) + (
            (loader.drop_last,) if loader._is_stream else ())

    def __call__(self):
        return self.kind(*self.arguments)


class _Endless:
    """The order of a stream."""

    def __iter__(self):
        while True:
            yield None

    def __len__(self):
        raise TypeError("a stream has no length")


class DataLoader:
    """Loops over a data set in batches.

    `sampler` gives the order, `batch_sampler` lists of indices; else `shuffle` draws an order each
    epoch from `generator` (the process' own by default). `batch_size=None` gives sample by sample.
    `collate_fn` makes a batch of a list of samples; default_collate() does. With `num_workers`
    processes, each has `prefetch_factor` batches under way; `worker_init_fn(id)` is called in each,
    `timeout` is in seconds, `persistent_workers` stay for the next epoch, and without `in_order`
    batches come as they are ready. `pin_memory` and `pin_memory_device` are taken and change
    nothing: there is no pageable memory to copy from.

    Raises ValueError and TypeError for options that do not fit each other, and what the data set
    raises; from a worker with its traceback in the message.
    """

    _FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset",
              "persistent_workers")
    _made = False

    def __class_getitem__(cls, _):
        return cls

    def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None,
                 num_workers=0, collate_fn=None, pin_memory=False, drop_last=False, timeout=0,
                 worker_init_fn=None, multiprocessing_context=None, generator=None, *,
                 prefetch_factor=None, persistent_workers=False, pin_memory_device="",
                 in_order=True):
        if num_workers < 0:
            raise ValueError(f"DataLoader: num_workers is at least 0, not {num_workers}")
        if timeout < 0:
            raise ValueError(f"DataLoader: timeout is at least 0, not {timeout}")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError("DataLoader: prefetch_factor goes with num_workers above 0")
        if prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError(f"DataLoader: prefetch_factor is at least 0, not {prefetch_factor}")
        if num_workers == 0 and persistent_workers:
            raise ValueError("DataLoader: persistent_workers goes with num_workers above 0")
        if num_workers == 0 and multiprocessing_context is not None:
            raise ValueError("DataLoader: multiprocessing_context goes with num_workers above 0")
        if not isinstance(multiprocessing_context,
                          (str, multiprocessing.context.BaseContext, type(None))):
            raise TypeError("DataLoader: multiprocessing_context is the name of a start method or "
                            f"a context, not {type(multiprocessing_context).__name__}")
        if (isinstance(multiprocessing_context, str) and
                multiprocessing_context not in multiprocessing.get_all_start_methods()):
            raise ValueError(f"DataLoader: there is no start method {multiprocessing_context!r}")
        self._is_stream = isinstance(dataset, IterableDataset)
        if not self._is_stream and not (hasattr(dataset, "__getitem__") or hasattr(dataset, "get")):
            raise TypeError("DataLoader: a data set has len() and [i], or is an IterableDataset; "
                            f"{type(dataset).__name__} is neither")
        self.dataset = dataset
        self.num_workers, self.timeout, self.worker_init_fn, self.in_order = (
            num_workers, timeout, worker_init_fn, in_order)
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.persistent_workers, self.generator = persistent_workers, generator
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.multiprocessing_context = multiprocessing_context
        self._set_order(batch_size, shuffle, sampler, batch_sampler, drop_last)
        self.collate_fn = (collate_fn if collate_fn is not None
                           else default_collate if self._auto_collation else default_convert)
        self._iterator = None
        self._made = True

    def _set_order(self, batch_size, shuffle, sampler, batch_sampler, drop_last):
        if self._is_stream:
            for name, value in (("shuffle", shuffle), ("sampler", sampler),
                                ("batch_sampler", batch_sampler)):
                if value:
                    raise ValueError("DataLoader: an IterableDataset has an order of its own; "
                                     f"{name} is not for it")
        if sampler is not None and shuffle:
            raise ValueError("DataLoader: sampler and shuffle exclude each other")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "DataLoader: batch_sampler excludes batch_size, shuffle, sampler and drop_last")
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("DataLoader: batch_size=None excludes drop_last")
        if sampler is None:
            if self._is_stream:
                sampler = _Endless()
            elif shuffle:
                sampler = RandomSampler(self.dataset, generator=self.generator)
            else:
                sampler = SequentialSampler(self.dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last, self.sampler, self.batch_sampler = (batch_size, drop_last,
                                                                             sampler, batch_sampler)

    def __setattr__(self, name, value):
        if self._made and name in self._FIXED:
            raise ValueError(f"DataLoader: {name} does not change after the loader is made")
        super().__setattr__(name, value)

    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _order(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def __len__(self):
        if not self._is_stream:
            return len(self._order)
        n = len(self.dataset)
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def __iter__(self):
        if self.num_workers == 0:
            return _Epoch(self)
        if not self.persistent_workers:
            return _WorkersEpoch(self, None)
        self._iterator = _WorkersEpoch(self, self._iterator)
        return self._iterator


class _Epoch:
    """One pass in this process."""

    def __init__(self, loader):
        # As with workers, whose seeds it would be: the orders do not depend on their number.
        draw_seed(loader.generator)
        self._order = iter(loader._order)
        self._fetch = _Fetchers(loader, loader.collate_fn)()
        self._length = loader.__len__

    def __iter__(self):
        return self

    def __len__(self):
        return self._length()

    def __next__(self):
        return self._fetch(next(self._order))


class _WorkersEpoch:
    """One loop over what workers fetch. Batch after batch is asked of the workers in turns, so who
    makes which one, and with it what workers draw at random, does not depend on how fast they
    are."""

    def __init__(self, loader, before):
        seed = draw_seed(loader.generator) % 2**63
        self._order, self._length = iter(loader._order), loader.__len__
        self._in_order, self._keep = loader.in_order, loader.persistent_workers
        if before is None:
            collate = worker_collate if loader.collate_fn is default_collate else loader.collate_fn
            setup = Setup(loader.dataset, _Fetchers(loader, collate), loader.num_workers,
                          loader.worker_init_fn)
            self._workers = Workers(setup, seed, loader.multiprocessing_context, loader.timeout)
        else:
            self._workers = before._give_up()
            self._workers.restart(seed)
        self._close = weakref.finalize(self, self._workers.close)
        self._under_way = dict.fromkeys(range(loader.num_workers), 0)
        self._turn = list(self._under_way)  # workers whose streams have not ended, the next first
        self._ready = {}  # by number: what came before its turn
        self._asked = self._given = 0
        for _ in range(max(loader.prefetch_factor, 1) * loader.num_workers):
            self._ask()

    def _give_up(self):
        """Returns the workers idle; pending batches are discarded."""
        while any(self._under_way.values()):
            self._receive()
        self._close.detach()
        return self._workers

    def _ask(self):
        if not self._turn:
            return
        try:
            indices = next(self._order)
        except StopIteration:
            return
        worker = self._turn.pop(0)
        self._turn.append(worker)
        self._workers.ask(worker, self._asked, indices)
        self._under_way[worker] += 1
        self._asked += 1

    def _receive(self):
        worker, number, batch = self._workers.answer(
            [worker for worker, count in self._under_way.items() if count])
        self._under_way[worker] -= 1
        self._ready[number] = batch
        if isinstance(batch, _End) and worker in self._turn:
            self._turn.remove(worker)

    def __iter__(self):
        return self

    def __len__(self):
        return self._length()

    def __next__(self):
        while True:
            batch = self._next_answer()
            self._ask()
            if isinstance(batch, _Failure):
                if not self._keep:
                    self._close()
                batch.throw()
            if not isinstance(batch, _End):
                return batch

    def _next_answer(self):
        while not (self._given in self._ready if self._in_order else self._ready):
            if not any(self._under_way.values()):
                if not self._keep:
                    self._close()
                raise StopIteration
            self._receive()
        self._given += 1
        return self._ready.pop(self._given - 1 if self._in_order else next(iter(self._ready)))
