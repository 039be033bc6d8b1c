"""One pass over all options of a new machine, before any work (spec sections 3 and 9.2)."""

import pytest
import smol
from smol import MachineConfig, ResourceSpec
from smol._note import LABEL, Note
from smol._plan import plan_machine

LOCAL = smol.ConnectOptions(target="local")


def plan(**config):
    return plan_machine(MachineConfig(**config), LOCAL)


def sized(**resources):
    return plan(resources=ResourceSpec(**resources))


@pytest.fixture(autouse=True)
def no_cloud_token(monkeypatch):
    monkeypatch.delenv("SMOL_CLOUD_TOKEN", raising=False)


def test_NothingAskedForIsTheEnginesDefault():
    made = plan_machine(None, None)
    assert made.name.startswith("smol-") and len(made.name) == 13
    assert {key: made.arguments[key] for key in ("cpus", "memory_mb", "disk_gb", "network", "image")} == {
        "cpus": 2,
        "memory_mb": 1024,
        "disk_gb": 20,
        "network": "none",
        "image": None,
    }
    assert made.note.ephemeral and not made.note.detach


@pytest.mark.parametrize("name", ["a", "0", "A_b-c_", "x" * 128, "pydantic-ai-" + "0" * 32])
def test_GoodNamesAreTaken(name):
    assert plan(name=name).name == name


@pytest.mark.parametrize(
    "name", ["", "-a", "_a", "a-", "a--b", "a.b", "a/b", "é", "x" * 129, "a b", "a\n", "a\0"]
)
def test_BadNamesAreConfigErrors(name):
    with pytest.raises(smol.SmolError) as caught:
        plan(name=name)
    assert caught.value.code == "CONFIG_ERROR"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cpus", 0),
        ("cpus", -1),
        ("cpus", 33),
        ("cpus", 256),
        ("cpus", True),
        ("cpus", 1.5),
        ("cpus", "2"),
        ("memory_mb", 0),
        ("memory_mb", 63),
        ("memory_mb", 1 << 31),
        ("memory_mb", -1),
        ("storage_gb", 0),
        ("storage_gb", 1 << 20),
        ("overlay_gb", -5),
        ("disk_durability", "never"),
        ("network", 1),
        ("network", "yes"),
        ("allow_hosts", "a.example"),
        ("allow_hosts", [1]),
        ("allow_cidrs", 5),
    ],
)
def test_BadResourcesAreRefusedByFieldName(field, value):
    with pytest.raises(smol.InvalidConfigError) as caught:
        sized(**{field: value})
    assert caught.value.code == "INVALID_CONFIG"
    assert field in str(caught.value)


@pytest.mark.parametrize(
    "host",
    ["http://x.com", "a:80", "x.com/path", "", ".", "a..b", "-a.com", "a-.com", "a b", "*", "a.*", "ü.com"],
)
@pytest.mark.parametrize("network", [None, True, False])
def test_WhatIsNoHostNameIsRefusedWhetherOrNotThereIsANetwork(host, network):
    with pytest.raises(smol.InvalidConfigError) as caught:
        sized(network=network, allow_hosts=["good.example", host])
    assert "allow_hosts" in str(caught.value)


@pytest.mark.parametrize(
    "cidr",
    ["nonsense", "", "10.0.0.0/33", "10.0.0/8", "::/129", "10.0.0.0/255.0.0.0", "10.0.0.0/8 ", "x.com"],
)
@pytest.mark.parametrize("network", [None, True, False])
def test_WhatIsNoNetworkIsAConfigError(cidr, network):
    with pytest.raises(smol.SmolError) as caught:
        sized(network=network, allow_cidrs=["10.0.0.0/8", cidr])
    assert caught.value.code == "CONFIG_ERROR" and "allow_cidrs" in str(caught.value)


def test_HostsAndNetworksGoToTheEngineAsTheyAre():
    hosts = ["x.com", "*.x.com", "A-b.example.", "localhost", "_sip._tcp.x.com", "xn--mnchen-3ya.de"]
    cidrs = ["10.0.0.0/8", "10.1.2.3/8", "192.168.1.1", "::1", "2001:db8::/32"]
    arguments = sized(allow_hosts=hosts, allow_cidrs=cidrs).arguments
    assert (arguments["allow_hosts"], arguments["allow_cidrs"]) == (hosts, cidrs)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("workdir", "relative"),
        ("workdir", "/a\0b"),
        ("workdir", 5),
        ("user", ""),
        ("user", " "),
        ("user", 1000),
        ("env", {"": "x"}),
        ("env", {"A=B": "x"}),
        ("env", {"A\0": "x"}),
        ("env", {"A": "x\0"}),
        ("env", {"A": 1}),
        ("env", ["A=1"]),
        ("labels", {"a": 1}),
        ("labels", {LABEL: "x"}),
        ("image", ""),
        ("image", 5),
        ("auto_stop_seconds", 0),
        ("auto_stop_seconds", 1.5),
        ("ttl_seconds", -1),
        ("name", 5),
        ("persistent", 1),
        ("detach", "no"),
        ("network", "open"),
    ],
)
def test_BadOptionsAreRefusedByFieldName(field, value):
    with pytest.raises(smol.InvalidConfigError) as caught:
        plan(**{field: value})
    assert field in str(caught.value)


def test_CodeForTheOlderExceptionsCatchesOursToo():
    with pytest.raises(OverflowError):
        sized(cpus=256)
    with pytest.raises(ValueError):
        sized(disk_durability="x")


def test_NoValueOfAVariableIsInAMessage():
    with pytest.raises(smol.InvalidConfigError) as caught:
        plan(env={"TOKEN": "hunter2\0"})
    assert "hunter2" not in str(caught.value) and "TOKEN" in str(caught.value)


class Seven:
    def __index__(self):
        return 7


def test_AnyIntegerTypeIsANumber():
    assert sized(cpus=Seven()).arguments["cpus"] == 7


@pytest.mark.parametrize(("given", "got"), [(64, 128), (127, 128), (128, 128), (2048, 2048)])
def test_TheEngineGivesAtLeast128Mebibytes(given, got):
    assert sized(memory_mb=given).arguments["memory_mb"] == got


@pytest.mark.parametrize(
    ("storage", "overlay", "disk"),
    [(None, None, 20), (30, None, 30), (None, 40, 40), (30, 25, 30), (5, 2, 20)],
)
def test_OneDiskHasRoomForTheLargerOfBoth(storage, overlay, disk):
    assert sized(storage_gb=storage, overlay_gb=overlay).arguments["disk_gb"] == disk


@pytest.mark.parametrize(
    ("config", "resources", "network"),
    [
        ({}, {}, "none"),
        ({"network": True}, {}, "open"),
        ({"network": True}, {"network": False}, "none"),
        ({"network": False}, {"network": True}, "open"),
        ({}, {"allow_hosts": ["a.example"]}, "allow_list"),
        ({}, {"allow_cidrs": []}, "allow_list"),
        ({}, {"network": False, "allow_hosts": ["a.example"]}, "none"),
        ({}, {"network": True, "allow_cidrs": ["10.0.0.0/8"]}, "allow_list"),
    ],
)
def test_TheNetworkIsThatOfResourcesElseOfTheConfig(config, resources, network):
    made = plan(**config, resources=ResourceSpec(**resources))
    assert made.arguments["network"] == network


@pytest.mark.parametrize(
    "config",
    [
        {"mounts": [smol.MountSpec("/tmp", "/t")]},
        {"ports": [smol.PortSpec(8080, 80)]},
        {"credentials": [smol.CredentialSpec("n", "E", ["h"])]},
        {"egress_interceptor": smol.EgressInterceptor("127.0.0.1:9", "t")},
        {"cache_disk": smol.CacheDiskRef("c")},
        {"branchable": True},
        {"checkpoint": True},
        {"forkable": True},
        {"image": "pack.smolmachine"},
        {"resources": ResourceSpec(gpu=True)},
        {"resources": ResourceSpec(cuda=True)},
        {"resources": ResourceSpec(gpu_vram_mib=100)},
    ],
)
def test_WhatTheEngineHasNotIsRefusedWithWhatToDoInstead(config):
    with pytest.raises(smol.NotSupportedError) as caught:
        plan(**config)
    assert len(str(caught.value)) > 40


@pytest.mark.parametrize(
    "config",
    [
        {"mounts": []},
        {"ports": []},
        {"credentials": []},
        {"branchable": False, "checkpoint": True},
        {"wait_for_ports": False},
        {"resources": ResourceSpec(gpu=False, cuda=False, disk_durability="deferred")},
        {"labels": {"any text": "ünd more", "": ""}},
        {"user": "1000:1000"},
        {"command": ["sleep", "60"]},
    ],
)
def test_WhatWorksWithoutTheFeatureIsTaken(config):
    plan(**config)


@pytest.mark.parametrize(
    "conn",
    [
        smol.ConnectOptions(target="cloud"),
        smol.ConnectOptions(api_key="k"),
        smol.ConnectOptions("cloud", api_key="k"),
    ],
)
def test_CloudTargetsAreRefused(conn):
    for call in (
        lambda: smol.Machine.create(None, conn),
        lambda: smol.Machine.connect("m", conn),
        lambda: smol.Machine.open("m", conn),
        lambda: smol.Machine.delete_by_name("m", conn),
        lambda: smol.Machine.list(conn),
    ):
        with pytest.raises(smol.NotSupportedError):
            call()


def test_ACloudTokenInTheEnvironmentCountsOnlyWithoutATarget(monkeypatch):
    monkeypatch.setenv("SMOL_CLOUD_TOKEN", "secret")
    plan_machine(None, LOCAL)
    for conn in (None, smol.ConnectOptions()):
        with pytest.raises(smol.NotSupportedError) as caught:
            plan_machine(None, conn)
        assert "secret" not in str(caught.value)


def test_AnUnknownTargetIsRefused():
    with pytest.raises(smol.InvalidConfigError):
        plan_machine(None, smol.ConnectOptions(target="moon"))


@pytest.mark.parametrize(
    ("persistent", "detach", "ephemeral"),
    [(False, False, True), (True, False, False), (False, True, False), (True, True, False)],
)
def test_AMachineIsEphemeralUnlessKeptOrDetached(persistent, detach, ephemeral):
    made = plan(persistent=persistent, detach=detach)
    assert (made.note.ephemeral, made.note.detach) == (ephemeral, detach)


def test_TheNoteTravelsAsALabelThatUsersDoNotSee():
    made = plan(labels={"a": "b"}, detach=True, command=["sleep", "9"], ttl_seconds=60)
    labels = made.arguments["labels"]
    assert labels["a"] == "b"
    assert Note.of(labels) == made.note


@pytest.mark.parametrize("text", ["", "null", "[]", "{", '{"detach": true, "later": 1}', "5", '"x"'])
def test_ADamagedOrForeignNoteIsNone(text):
    assert Note.of({LABEL: text}).ephemeral is False
