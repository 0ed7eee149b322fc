"""A network that learns labels at each base of a genome: `genodiff finetune bases`.

An entry of the job is an epoch. Where the fit is stands in OUT.partial.safetensors beside them: a
fit that is killed goes on from its last minute, to the same bits.
"""

import json
import logging
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
from torch import nn

from genodiff.annotation.base_labels import (
    BaseLabels,
    read_class_labels,
    read_gene_labels,
    read_value_labels,
)
from genodiff.annotation.gene_grammar import list_introns
from genodiff.errors import DataError, UsageError
from genodiff.finetuning.adapters import adapted_weights
from genodiff.finetuning.base_labeller import BaseLabeller
from genodiff.finetuning.base_lesson import BaseLesson, BaseTask, count_steps, measure_bases
from genodiff.finetuning.base_request import BasesRequest
from genodiff.finetuning.base_windows import BaseWindows, Span, subtract
from genodiff.finetuning.fit_loop import FitLoop, Tick
from genodiff.finetuning.kept_labeller import write_labeller
from genodiff.finetuning.model_spec import open_model, parse_models
from genodiff.finetuning.model_words import SCRATCH
from genodiff.finetuning.predictor_files import describe_network
from genodiff.finetuning.protocol import FitSettings
from genodiff.finetuning.related_features import KeptRelatives, RelatedFeatures, keep_relatives
from genodiff.finetuning.unit import null_nonfinite
from genodiff.finetuning.unit_files import LABELLER
from genodiff.io import atomic
from genodiff.io.faidx import Genome
from genodiff.io.file_kinds import sha256_file
from genodiff.io.places import list_places
from genodiff.io.regions import parse_region
from genodiff.io.target import is_own_folder
from genodiff.jobs import machine
from genodiff.jobs.job import Job, Rows
from genodiff.memory.text import MOST_WINDOW
from genodiff.runs.model import collect_tensors
from genodiff.runs.related_backbone import RelatedBackbone
from genodiff.runs.related_model import relate_model
from genodiff.runs.relatives_plan import describe_waiting

_log = logging.getLogger("genodiff")
_LONG = 1800.0  # seconds from which on a plan names what takes less


class BasesJob(Job[BasesRequest]):
    """The folder of `genodiff finetune bases`."""

    noun = "steps"
    unit = "epoch"

    def open(self, stack: ExitStack) -> None:
        asked = self.request
        self.genome = stack.enter_context(Genome(asked.fasta))
        self.hashes[str(asked.fasta)] = self.genome.sha256
        spec = parse_models([str(asked.run), SCRATCH], ())
        self.spec = spec[int(asked.scratch)]
        self.labels = _read_labels(asked, self.genome)
        self.spans = split_intervals(asked, self.genome, self.labels)
        self.windows = {
            part: BaseWindows(
                self.genome, self.labels, spans, core=asked.core, context=asked.context
            )
            for part, spans in self.spans.items()
            if spans
        }
        loss = (asked.loss or "poisson") if self.labels.kind == "values" else ""
        if loss == "poisson" and any((one < 0).any() for one in self.labels.contigs.values()):
            what = "--loss poisson is of counts, and a value is below 0"
            raise UsageError(what, fix="give --loss mse")
        self.task = BaseTask(self.labels.kind, self.labels.names, loss, asked.ends)
        backbone, alphabet = self.spec.network(asked.seed, self.device)
        names = "method epochs max_steps batch_size lr patience ema adapter".split()
        self.settings = FitSettings.parse({name: getattr(asked, name) for name in names})
        features, self.kept = self._relate(backbone)
        self.network = BaseLabeller(
            features,
            self.labels.mirror,
            complement=alphabet.complement,
            head=asked.head,
            seed=asked.seed,
            frozen=asked.method == "frozen",
            chain=asked.chain,
            introns=self._find_introns(),
        ).to(self.device)
        if self.network.chain is not None:
            self.network.chain.begin(count_steps(self.windows["train"]))
        self.adapted = stack.enter_context(ExitStack())
        self.adapted.enter_context(adapted_weights(backbone, asked.adapter, asked.seed))
        self.lesson = BaseLesson(
            self.network,
            (self.windows["train"], self.windows["valid"]),
            self.task,
            self.settings,
            asked.seed,
            class_power=asked.class_power,
        )
        self.loop = FitLoop(self.lesson)
        self.total = self.loop.steps

    def _relate(self, backbone: nn.Module) -> tuple[nn.Module, KeptRelatives | None]:
        """What the head reads, and what is kept of relatives."""
        asked = self.request
        self.waiting: dict[str, Any] = {}
        if not asked.relatives:
            return backbone, None
        if (width := asked.core + 2 * asked.context) > MOST_WINDOW:
            what = f"with --relatives a window has at most {MOST_WINDOW:,} bases, not {width:,}"
            raise UsageError(what, fix="give a smaller --core or --context")
        own = open_model(str(self.spec.path))
        given, plan = asked.relatives, asked.plan
        model = relate_model(own, given, strains=asked.strains, fasta=asked.fasta, plan=plan)
        self.waiting = describe_waiting(model.relatives)
        if self.waiting:
            return backbone, None
        related, features = model.backbone, RelatedFeatures(backbone)
        assert isinstance(related, RelatedBackbone)
        assert model.relatives is not None
        features.take(related.relatives, related.votes)
        return features, keep_relatives(related, model.relatives)

    def plan(self) -> dict[str, Any]:
        windows = min(self.settings.batch_size, len(self.windows["train"]))

        def learn_one() -> int:
            self.lesson.learn(np.arange(1), 0, self.lesson.draw_turned(0))
            return 1

        self.network.train()
        seconds = round(machine.time_steps(learn_one) * windows * self.total, 1)
        quicker = "--max-steps 1000" if self.request.method == "frozen" else "--method frozen"
        return {
            **self._count(), "names": list(self.task.names), "steps": self.total,
            "trained": self.loop.trained,
            "seconds": seconds, "device": self.device, **self.waiting,
            **({"quicker": quicker} if seconds > _LONG else {}),
        }  # fmt: skip

    def identify(self) -> dict[str, Any]:
        asked = self.request
        within = [] if asked.within is None else [asked.within]
        self.files = {str(one): sha256_file(one) for one in (*asked.label_files, *within)}
        return {
            "model": [self.spec.kind, self.spec.digest], "labels": list(self.files.values()),
            **self._name_relatives(), "device": self.device.partition(":")[0],
        }  # fmt: skip

    def entries(self, first: int) -> Iterator[bytes]:
        state, done = self.request.state_file, 0

        def watch(tick: Tick) -> None:
            nonlocal done
            self.tick(tick.step - done)
            done = tick.step

        if self.request.fresh:
            state.unlink(missing_ok=True)
        epochs = self.loop.run(state=state, identity=self.digest, watch=watch)
        for number, epoch in enumerate(epochs):
            if number >= first:
                _log.info(
                    "epoch %s: loss %.4f, validation %.4f, its %s %.4f", number + 1,
                    epoch.train_loss, epoch.valid_loss, self.lesson.metric, epoch.valid,
                )  # fmt: skip
                yield json.dumps(null_nonfinite(epoch._asdict())).encode()
        self.adapted.close()  # from now on the weights are plain

    def weigh(self, entry: bytes) -> int:
        return 0  # steps are counted as they are made

    def write(self, rows: Rows) -> dict[str, Any]:
        network, asked = self.network.eval(), self.request
        measured = {
            part: null_nonfinite(measure_bases(network, windows, self.task))
            for part, windows in self.windows.items()
            if part != "train"
        }
        return {
            "run": str(asked.run), "scratch": asked.scratch, "pretraining": self.spec.describe(),
            "fasta": {"path": str(asked.fasta), "sha256": self.genome.sha256},
            "labels": self.files, "types": list(asked.types), **self._count(),
            "valid": list(asked.valid), "test": list(asked.test), "seed": asked.seed,
            "trained": self.loop.trained, "metric": self.lesson.metric,
            "best_epoch": self.loop.best_epoch, "history": [json.loads(row) for row in rows()],
            "measured": measured,
        }  # fmt: skip

    def finish(self, told: dict[str, Any]) -> dict[str, Any]:
        asked, network = self.request, self.network
        own = is_own_folder(asked.out, LABELLER)
        values = {
            "kind": self.task.kind, "names": self.task.names, "loss": self.task.loss,
            "head": asked.head, "head_options": network.head.sizes, "chain": asked.chain,
            "introns": self._find_introns(), "ends": asked.ends, "core": asked.core,
            "context": asked.context,
            "settings": self.settings.model_dump(mode="json"),
            "network": describe_network(self.spec), "told": told, **self._name_relatives(),
        }  # fmt: skip
        with atomic.atomic_directory(asked.out, aside=not own, replace=own) as folder:
            write_labeller(folder, values, collect_tensors(network))
        asked.state_file.unlink(missing_ok=True)
        return told

    def _find_introns(self) -> list[int]:
        """The phases of introns among the labels of train and valid: no other is predicted."""
        if self.task.kind != "genes":
            return [0, 1, 2]
        some = (self.windows["train"], self.windows["valid"])
        cores = (one.labels.cut(*span) for one in some for span in one.cores)
        held = {state for labels in cores for state in set(labels.tolist())}
        return [p for p in range(3) if held.intersection(list_introns([p]))]

    def _name_relatives(self) -> dict[str, Any]:
        """What decides what relatives say; without them nothing."""
        return {} if self.kept is None else {"relatives": self.kept.model_dump(mode="json")}

    def _count(self) -> dict[str, Any]:
        sizes = {part: len(windows) for part, windows in self.windows.items()}
        counts = dict(zip(self.task.names, self.labels.count().tolist(), strict=True))
        return {"windows": sizes, "counts": counts}


def split_intervals(
    asked: BasesRequest, genome: Genome, labels: BaseLabels
) -> dict[str, list[Span]]:
    """The intervals of train, valid and test.

    Without a validation part, it is the last tenth of each contig that has labels, the test part
    left out. Raises `UsageError` for parts that overlap or leave nothing.
    """
    contigs = dict(genome.contigs)
    held = {
        part: [
            (word, 0, contigs[word]) if word in contigs else parse_region(word, contigs)
            for word in getattr(asked, part)
        ]
        for part in ("valid", "test")
    }
    rest = [(one, 0, contigs[one]) for one in contigs if one in labels.contigs]
    rest = subtract(rest, held["test"])
    if not held["valid"]:
        held["valid"] = [(one, end - max(1, (end - start) // 10), end) for one, start, end in rest]
    elif subtract(held["valid"], held["test"]) != subtract(held["valid"], []):
        what = "the validation part and the test part overlap"
        raise UsageError(what, fix="give each contig, or part of one, once")
    train = subtract(rest, held["valid"])
    if not train:
        what = "the validation and test parts leave no labelled contig to train on"
        raise UsageError(what, fix="hold fewer contigs out, or parts of them")
    for part, spans in held.items():
        if spans and not any(labels.known(labels.cut(*span)).any() for span in spans):
            named = ", ".join(getattr(asked, part)) or "the last tenth of each contig"
            what = f"no base of --{part} {named} has a label"
            raise DataError(what, file=asked.label_files[0], fix="hold other contigs out")
    return {"train": train, **held}


def _read_labels(asked: BasesRequest, genome: Genome) -> BaseLabels:
    contigs = dict(genome.contigs)
    if asked.genes is not None:
        found = read_gene_labels(asked.genes, contigs, genome)
    elif asked.classes is not None:
        found = read_class_labels(
            asked.classes,
            contigs,
            types=tuple(asked.types),
            all_as=asked.all_as,
            stranded=asked.stranded,
            mask_shared=asked.mask_shared,
        )
    else:
        found = read_value_labels(asked.tracks, contigs, fill=asked.fill)
    found = found.mask_unread(genome)
    if asked.within is None:
        return found
    places = list_places(contigs, bed=asked.within, along="labels")
    return found.mask_outside((one.contig, one.start, one.end) for one in places)
