"""Settings: by place or by short name, from presets, files, flags and domains; equal runs."""

from typing import Any

import pytest
import yaml
from tiny_training import TINY, tiny

from genodiff.backbones.backbone import PRESETS
from genodiff.backbones.dit import DiTSettings
from genodiff.domain import DOMAINS
from genodiff.errors import UsageError
from genodiff.runs.config import RunConfig, list_leaves
from genodiff.runs.resolve import (
    ALIASES,
    DEFAULT_STEPS,
    list_short_names,
    read_config,
    resolve_config,
)
from genodiff.settings import to_yaml


def test_a_written_configuration_is_read_back_unchanged(tmp_path):
    noise = {"schedule": "polynomial", "schedule_options": {"power": 2.0}}
    config = tiny(lr=0.00123, betas=[0.8, 0.95], **noise)
    (tmp_path / "config.yaml").write_text(to_yaml(config))
    again = read_config(tmp_path / "config.yaml")
    assert again == config
    assert again.digest() == config.digest()


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_resolves_and_keeps_its_name(preset):
    one_way = {"objective": "ar"} if PRESETS[preset].causal else {}
    config = resolve_config({"recipe": "toy", "preset": preset} | one_way)
    assert (config.preset, config.backbone) == (preset, PRESETS[preset])
    assert resolve_config(yaml.safe_load(to_yaml(config))).preset == preset
    other = {"recipe": "toy", "preset": preset, "n_layer": 3} | one_way
    assert resolve_config(other).preset is None


def test_short_names_mean_one_place_each():
    assert list_short_names()["lr"] == ("optim", "lr")
    assert list_short_names()["steps"] == ("train", "max_steps")
    places = [place for name, place in list_short_names().items() if name not in ALIASES]
    assert len(places) == len(set(places))
    for spelled in ({"lr": 0.5}, {"optim.lr": 0.5}):
        whole = {"recipe": "toy", "optim": {"lr": 0.5}}
        assert resolve_config({"recipe": "toy", **spelled}) == resolve_config(whole)


def test_flags_go_over_the_file_and_a_preset_among_them_replaces_its_network():
    given = {"recipe": "toy", "d_model": 20, "lr": 0.5}
    config = resolve_config(given, over={"optim": {"lr": 0.25}})
    assert (config.backbone.d_model, config.optim.lr) == (20, 0.25)
    config = resolve_config(given, over={"preset": "caduceus-ph-tiny"})
    assert (config.backbone, config.optim.lr) == (PRESETS["caduceus-ph-tiny"], 0.5)


def test_the_kind_of_network_brings_its_own_settings():
    config = resolve_config({"recipe": "toy"}, over={"backbone": {"kind": "dit"}})
    assert (config.preset, config.backbone) == ("dit-470k", PRESETS["dit-470k"])
    config = resolve_config({"recipe": "toy", "model": "dit", "n_layer": 2})
    assert isinstance(config.backbone, DiTSettings)
    assert (config.preset, config.backbone.n_layer) == (None, 2)
    written = yaml.safe_load(to_yaml(config))
    assert resolve_config(written) == config
    for over, wanted in (
        ({"backbone": {"kind": "caduceus"}}, PRESETS["caduceus-ps-470k"]),
        ({"preset": "caduceus-ph-tiny"}, PRESETS["caduceus-ph-tiny"]),
    ):
        assert resolve_config(written, over=over).backbone == wanted
    config = resolve_config(written, over={"backbone": {"kind": "dit", "n_layer": 3}})
    assert config.backbone.n_layer == 3


def test_without_a_limit_there_is_a_default_one():
    assert resolve_config({"recipe": "toy"}).train.max_steps == DEFAULT_STEPS
    assert resolve_config({"recipe": "toy", "max_minutes": 3}).train.max_steps is None


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"bacth_size": 4}, "bacth_size.*did you mean 'batch_size'"),
        ({"optim": {"rl": 1}}, "optim.rl.*known: .*lr"),
        ({"optim.rl": 1}, "optim.rl"),
        ({"steps": -5}, "max_steps"),
        ({"batch_size": 0}, "batch_size"),
        ({"steps": 20.5}, "max_steps.*integer"),
        ({"lr": -1}, "lr"),
        ({"lr": float("inf")}, "lr"),
        ({"lr": float("nan")}, "lr"),
        ({"seq_len": 2**31}, "seq_len"),
        ({"batch_size": 4, "accumulate": 3}, "multiple"),
        ({"lr": 1, "optim": {"lr": 2}}, "twice"),
        ({"optim": 3}, "optim"),
        ({"schedule": "lineer"}, "linear"),
        ({"preset": "caduceus-ps-470"}, "caduceus-ps-470k"),
        ({"preset": 5}, "preset"),
        ({"preset": {"train": None}}, "preset"),
        ({"preset": ["caduceus-ps-tiny"]}, "preset"),
        ({"seed": -1}, "seed"),
        ({"betas": [0.9, 1.0]}, "betas"),
        ({"model": "dti"}, "backbone.kind.*'dti'.*did you mean 'dit'"),
        ({"model": "dit", "strands": "single"}, r"no setting 'backbone\.strands'"),
        ({"model": "dit", "n_hed": 2}, "n_hed.*did you mean 'n_head'"),
        (
            {"preset": "dit-470k", "backbone": {"n_hed": 2}},
            r"no setting 'backbone\.n_hed'; did you mean 'n_head'",
        ),
        ({"preset": "dit-470k", "n_head": 3}, "multiple of n_head"),
        ({"preset": "dit-470k", "d_model": -3}, r"setting 'backbone\.d_model'"),
        ({"preset": "dit-470k", "model": "caduceus"}, "preset 'dit-470k' is a dit, not a caduceus"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_file_and_name(given, named):
    with pytest.raises(UsageError, match=f"run.yaml: .*{named}"):
        resolve_config({"recipe": "toy"} | given, file="run.yaml")


@pytest.mark.parametrize("given", [None, [], "text", 3])
def test_a_file_that_is_no_mapping_is_refused(given):
    with pytest.raises(UsageError, match=r"run.yaml: expected keys and values"):
        resolve_config(given, file="run.yaml")  # type: ignore[arg-type]


def test_the_flags_fault_is_not_laid_on_the_file():
    with pytest.raises(UsageError) as caught:
        resolve_config({"recipe": "toy"}, file="run.yaml", over={"lr": -1})
    assert "run.yaml" not in str(caught.value)


def test_limits_and_machinery_are_no_part_of_a_runs_identity_and_all_else_is():
    config = tiny()
    same = tiny(steps=9, checkpoint_every=1, workers=2, keep=7, accumulate=2)
    assert config.digest() == same.digest()
    assert config.differences(same) == []
    other = tiny(lr=0.5, d_model=24)
    assert config.digest() != other.digest()
    assert config.differences(other) == ["backbone.d_model: 16, not 24", "optim.lr: 0.002, not 0.5"]


def test_what_a_folder_leaves_open_differs_from_no_choice():
    left = tiny(precision="auto", batch_size="auto")
    assert tiny(precision="bf16", batch_size=8).differences(left) == []
    assert left.differences(tiny(precision="bf16", batch_size=8)) == [
        "train.batch_size: auto, not 8", "train.precision: auto, not bf16"
    ]  # fmt: skip


def test_each_setting_but_the_free_ones_changes_the_digest():
    changed: dict[str, Any] = {
        "seed": 2, "data.seq_len": 65, "data.rc_augment": True, "data.soft_mask_weight": 0.3,
        "data.max_n_fraction": 0.3,
        "backbone.n_layer": 2, "diffusion.exact_count": False, "diffusion.time_sampling": "iid",
        "optim.ema_decay": 0.5,
        "train.batch_size": 8, "train.precision": "bf16", "train.max_skipped": 9,
        "train.validate_every": 77,
    }  # fmt: skip
    digests = {
        resolve_config({**TINY, key.split(".")[-1]: value}).digest()
        for key, value in changed.items()
    }
    assert len(digests | {tiny().digest()}) == len(changed) + 1


def test_a_run_without_genomes_keeps_the_digest_that_it_had_before_there_were_any():
    config = tiny()
    written = config.model_dump(mode="json")
    assert not {"genomes", "labels", "classes"} & set(written)
    assert "temperature" not in written["data"]
    assert "genomes" in RunConfig.model_fields
    many = {**TINY, "recipe": "own", "genomes": "list.tsv"}
    even = resolve_config({**many, "temperature": 2.0})
    assert even.model_dump(mode="json")["data"]["temperature"] == 2.0
    assert even.digest() != resolve_config(many).digest()


def test_leaves_name_every_setting_once():
    places = [place for place, _ in list_leaves(tiny().model_dump())]
    assert len(places) == len(set(places))
    assert {"recipe", "optim.lr", "diffusion.schedule_options", "backbone.d_model"} < set(places)


def test_single_strand_networks_see_both_strands_at_random():
    assert not tiny().rc_augment
    assert tiny(strands="single").rc_augment
    assert not tiny(strands="single", rc_augment=False).rc_augment
    assert resolve_config({"recipe": "toy", "preset": "dit-470k"}).rc_augment
    assert isinstance(tiny(), RunConfig)


@pytest.mark.parametrize("text", ["? [a, b]\n: 1\n", "? {a: 1}\n: 1\n", "lr: {[1]: 2}\n"])
def test_a_yaml_key_that_is_a_list_is_named_with_its_line(tmp_path, text):
    path = tmp_path / "config.yaml"
    path.write_text(f"recipe: toy\n{text}")
    with pytest.raises(UsageError, match="a key is a list or a mapping") as caught:
        read_config(path)
    assert caught.value.line == 2


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=list(DOMAINS))
def test_a_domain_names_a_preset_and_settings_that_make_a_run(domain):
    recipe = "toy" if domain.has_two_strands else "own"
    config = resolve_config({"recipe": recipe, "domain": domain.name})
    assert config.preset == domain.preset
    assert domain.preset in PRESETS
    assert set(domain.inputs) <= set(RunConfig.model_fields)
    for section, values in domain.settings.items():
        found = getattr(config, section)
        assert {name: getattr(found, name) for name in values} == values
    assert domain.has_two_strands or not config.rc_augment
