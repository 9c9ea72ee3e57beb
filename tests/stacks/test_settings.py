"""Settings: every validator, every default, and what a person gets to read."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Optional

import pytest
import yaml
from pydantic import SecretStr

from metal_ipi.stacks.hub.sections import HubSettings
from metal_ipi.stacks.platforms.equinix_metal.settings import EquinixMetal
from metal_ipi.stacks.problems import SECRET_NAMES, Problem, SettingsError, nearest
from metal_ipi.stacks.sections.base import REHEARSAL
from metal_ipi.stacks.sections.forms import PoolName
from metal_ipi.stacks.settings import Settings, parse
from tests.mocks import config_text
from tests.stacks.answers import PUBLIC_KEY, problems, tells

_ROOT = Path(__file__).resolve().parents[2]
_UUID = "52000fb2-ee46-4673-93a8-de2c2bdba33b"
_ABSENT = object()
_INSTALL = {"device": {"smallest": True}}
_COMPLETE: dict[str, Any] = {
    "clusterName": "lab",
    "baseDomain": "example.com",
    "openshiftVersion": "4.21.3",
    "platform": {"type": "equinix-metal", "authToken": "t0ken", "projectId": _UUID, "metro": "da"},
    "boot": {"streamUrl": "https://boot.example.com/stream.json", "install": _INSTALL},
    "dns": {"type": "rfc2136", "server": "192.0.2.53", "tsig": {"name": "key.", "secret": "c2VjcmV0"}},
    "artifacts": {
        "type": "ssh",
        "host": "boot.example.com",
        "user": "upload",
        "hostKey": PUBLIC_KEY,
        "privateKey": "-----BEGIN",
        "baseUrl": "https://boot.example.com/artifacts",
    },
    "install": {"pullSecret": '{"auths":{"quay.io":{"auth":"eDp5"}}}'},
}


def _server(role: str, number: int, place: int = 1) -> dict[str, Any]:
    return {
        "name": f"{role}-{number}",
        "bmc": {"address": f"https://10.0.0.{place}", "username": "ipi", "password": "pa55word"},
        "mac": f"52:54:00:00:00:{place:02x}",
        "address": f"192.0.2.{place}",
    }


_RACK = {"type": "redfish", "bootstrap": {"type": "lend", "server": "worker-0"}}
_ROUTE53 = {"type": "route53", "accessKeyId": "a", "secretAccessKey": "b"}
_DELEGATE = {"type": "delegate", "server": "192.0.2.53", "tsig": {"name": "key.", "secret": "c2VjcmV0"}}
_S3 = {"type": "s3", "bucket": "b", "region": "r", "baseUrl": "https://b.example.com"}


def _with(changes: dict[str, Any], base: dict[str, Any] = _COMPLETE) -> dict[str, Any]:
    tree = copy.deepcopy(base)
    for path, value in changes.items():
        *parents, last = path.split(".")
        section = tree
        for parent in parents:
            section = section.setdefault(parent, {})
        if value is _ABSENT:
            section.pop(last, None)
        else:
            section[last] = copy.deepcopy(value)
    return tree


def _settings(changes: dict[str, Any] | None = None) -> Settings:
    return parse(config_text(_with(changes or {})), "s1")


def _problems(changes: dict[str, Any]) -> tuple[Problem, ...]:
    return problems(config_text(_with(changes)))


def test_a_complete_configuration_is_taken() -> None:
    settings = _settings()
    assert (settings.domain, settings.zone) == ("lab.example.com", "example.com")
    assert isinstance(settings.platform, EquinixMetal)
    assert settings.platform.auth_token == SecretStr("t0ken")


_DISK = "/dev/disk/by-id/nvme-1"

_WRONG: list[tuple[str, Any, str, str, str]] = [
    # setting, value, where the problem is, why, remedy
    ("clusterName", "Lab_1", "clusterName", "it is not a DNS label", "use up to 54 of a-z, 0-9 and '-'"),
    ("clusterName", "a" * 55, "clusterName", "it is not a DNS label", "use up to 54"),
    ("clusterName", "lab\n", "clusterName", "it is not a DNS label", "use up to 54"),
    ("baseDomain", "example.com.", "baseDomain", "it is not a DNS domain", "without a dot at the end"),
    ("baseDomain", "com", "baseDomain", "it is not a DNS domain", "labels separated by dots"),
    ("baseDomain", _ABSENT, "baseDomain", "it is required", "pulumi config set --path 'metal-ipi:baseDomain' <value>"),
    ("openshiftVersion", "4.21", "openshiftVersion", "it is not a release", "give major, minor and patch, e.g. 4.21.3"),
    ("openshiftVersion", "latest", "openshiftVersion", "it is not a release", "e.g. 4.21.3"),
    ("platform.type", "packet", "platform.type", "one of the existing types", "'equinix-metal', 'redfish'"),
    ("platform.projectId", "my-project", "platform.projectId", "it is not a UUID", "copy the id"),
    ("platform.organizationId", _UUID.upper(), "platform.organizationId", "it is not a UUID", "copy the id"),
    ("platform.projectName", "ocp", "platform", "projectId and projectName are both set", "set projectId to use"),
    ("platform.facilities", ["da11"], "platform", "exactly one of metro and facilities must be set", "set metro"),
    ("platform.metro", _ABSENT, "platform", "exactly one of metro and facilities must be set", "or facilities"),
    ("platform.facility", "da11", "platform.facility", "there is no such setting", "did you mean 'facilities'?"),
    ("controlPlane", {"count": 2}, "controlPlane.count", "if either of them fails", "use 3 or 1, or add an arbiter"),
    *(("controlPlane", {"count": count}, "controlPlane.count", "control planes of 1, 3, 4 or 5 machines", "one of")
      for count in (-1, 0, 6, 7)),
    ("controlPlane", {"count": "3"}, "controlPlane.count", "it should be 1, 2, 3, 4 or 5", "4 or 5 from OpenShift"),
    ("installConfig", {"platform": {"external": {"platformName": " x"}}},
     "installConfig.platform.external.platformName", "it is not a name", "ASCII"),
    ("installConfig", {"platform": {"external": {"cloudControllerManager": "Internal"}}},
     "installConfig.platform.external.cloudControllerManager", "it should be '' or 'External'", "each node is tainted"),
    ("installConfig", {"platform": {}}, "installConfig.platform.external", "it is required", ""),
    ("installConfig", {"platform": {"external": {"cloudControllerManager": "External"}}},
     "installConfig.platform.external.cloudControllerManager", "has no cloud controller manager", "add the manifests"),
    ("arbiter", {"count": 2}, "arbiter.count", "it should be 0 or 1", "controlPlane.count 2"),
    ("arbiter.labels", {"node-role.kubernetes.io/arbiter": ""}, "arbiter.labels.node-role.kubernetes.io/arbiter.[key]",
     "kubelets set this label themselves", "take another key"),
    ("installConfig", {"other": {"arbiter": {"name": "arbiter", "replicas": 1}}}, "installConfig.other.arbiter",
     "the program sets this field itself", "set arbiter"),
    ("workers", {"count": -1}, "workers.count", "it should be greater than or equal to 0", "0 to 1000"),
    ("workers", {"count": 1001}, "workers.count", "it should be less than or equal to 1000", "0 to 1000"),
    ("workers", {"count": "3"}, "workers.count", "it should be a valid integer", "0 to 1000"),
    ("workers", {"perStack": -1}, "workers.perStack", "it should be greater than or equal to 0", "0 to 1000"),
    ("workers", {"perStack": 1001}, "workers.perStack", "it should be less than or equal to 1000", "0 to 1000"),
    *(
        ("workers", {"count": 1, "pools": [{"name": "gpu", "first": 10, "count": 2, **pool}]},
         f"workers.pools[0].{where}", why, remedy)
        for pool, where, why, remedy in (
            ({"name": "GPU"}, "name", "a pool cannot have this name", "use up to 20 of a-z"),
            ({"name": "1st"}, "name", "a pool cannot have this name", "beginning with a letter"),
            ({"first": -1}, "first", "it should be greater than or equal to 0", "its first worker"),
            ({"first": 9001}, "first", "it should be less than or equal to 9000", "its first worker"),
            ({"count": 0}, "count", "it should be greater than or equal to 1", "1 to 1000"),
            ({"count": 1001}, "count", "it should be less than or equal to 1000", "1 to 1000"),
            ({"kernelArguments": ["a b"]}, "kernelArguments", "is not one argument", ""),
            ({"labels": {"kubernetes.io/hostname": "x"}}, "labels.kubernetes.io/hostname.[key]", "kubelets set", ""),
            ({"size": 1}, "size", "there is no such setting", ""),
        )
    ),
    ("pool", "a_b", "pool", "a pool cannot have this name", "use up to 20 of a-z"),
    ("platform.pools", {"gpu": {"plan": ""}}, "platform.pools.gpu.plan", "", ""),
    ("platform.pools", {"gpu": {"reservations": ["x"]}}, "platform.pools.gpu.reservations", "it is not a UUID", "copy"),
    ("boot.streamUrl", "ftp://host/x", "boot.streamUrl", "it is not an http(s) URL", "give the URL of"),
    ("boot.streamUrl", "https://host/x\n", "boot.streamUrl", "it is not an http(s) URL", "give the URL"),
    ("boot.streamFile", "s.json", "boot", "streamUrl and streamFile are both set", "set one of them"),
    ("boot.architecture", "amd64", "boot.architecture", "it should be 'x86_64' or 'aarch64'",
     "correct it; the setting's description: x86_64 or aarch64"),
    *(
        ("boot.install", {"device": rule}, f"boot.install.device{where}", why, remedy)
        for rule, where, why, remedy in (
            ({"deviceName": "/dev/sda"}, ".deviceName", "change between boots", "a path below /dev/disk/by-id"),
            ({"deviceName": "/dev/nvme0n1"}, ".deviceName", "change between boots", "give a stable name"),
            ({"deviceName": "/dev/dm-0"}, ".deviceName", "it is not a stable device path", "/dev/disk/by-path"),
            ({"byId": "/dev/disk/by-id/x"}, ".byId", "it is not a name below", "give the name alone"),
            ({"wwn": "5000C5"}, ".wwn", "it is not a World Wide Name", "lsblk -o NAME,WWN"),
            ({"wwnWithExtension": "x"}, ".wwnWithExtension", "it is not a World Wide Name", "lsblk"),
            ({"wwnVendorExtension": "0x"}, ".wwnVendorExtension", "it is not a World Wide Name", "lsblk"),
            ({"hctl": "0:0:0"}, ".hctl", "it is not a SCSI address", "host:channel:target:lun"),
            ({"serial": ""}, ".serial", "it is empty", "copy it from"),
            ({"model": " SSD"}, ".model", "spaces at an end", "copy it from"),
            ({"vendor": "a\tb"}, ".vendor", "it is empty, or has spaces", "copy it from"),
            ({"minSize": 0}, ".minSize", "it should be greater than or equal to 1", "the least size, GiB"),
            ({"minSize": 9, "maxSize": 8}, ".maxSize", "less than minSize (9)", "correct one"),
            ({"smallest": False}, ".smallest", "it should be True", "the smallest"),
            ({}, "", "it has no rule", "e.g. smallest: true"),
            ({"byPath": "x"}, ".byPath", "there is no such setting", "remove it; possible here: byId"),
        )
    ),
    ("boot.install", {}, "boot.install.device", "it is required", "--path 'metal-ipi:boot.install.device'"),
    ("boot.install", {"device": {"smallest": True}, "wipeDisks": [{"minSize": 1}, {}]}, "boot.install.wipeDisks[1]",
     "it has no rule", "give at least one rule"),
    ("boot.install", {"device": {"smallest": True}, "validHours": 0}, "boot.install.validHours", "greater than",
     "how many hours"),
    ("boot.install", {"device": {"smallest": True}, "image": "raw"}, "boot.install.image", "'live' or 'stream'",
     "the live system contains"),
    ("boot",
     {"streamUrl": "https://h/s.json", "install": {"device": {"smallest": True}}, "consoles": ["tty0", "ttyUSB0"]},
     "boot.consoles", "coreos-installer does not know the console 'ttyUSB0'", "set any other in boot.kernelArguments"),
    ("boot.installDevice", "/dev/sda", "boot.installDevice", "there is no such setting", "did you mean 'install'?"),
    ("controlPlane", {"kernelArguments": ["a b"]}, "controlPlane.kernelArguments", "is not one argument", "per list"),
    ("workers", {"kernelArguments": [""]}, "workers.kernelArguments", "is not one argument", "per list item"),
    ("reprovision", {"maxUnavailable": 0}, "reprovision.maxUnavailable", "greater than or equal to 1", "how many"),
    ("reprovision", {"controlPlane": "ignore"}, "reprovision.controlPlane", "it should be 'refuse' or 'keep'", "keep:"),
    ("reprovision", {"drainTimeout": 0}, "reprovision.drainTimeout", "greater than or equal to 1", "seconds until"),
    ("reprovision", {"consent": ["worker-0"]}, "reprovision.consent[0]", "no such control plane machine",
     "name one of: control-plane-0, control-plane-1, control-plane-2"),
    ("platform", {**_RACK, "servers": [{**_server("control-plane", 0), "name": "master-0"}]},
     "platform.servers[0].name", "it is neither control-plane-<n> nor worker-<n>", "e.g. worker-0"),
    ("platform", {**_RACK, "servers": []}, "platform.servers", "it lists no server", "at least one control plane "
        "machine"),
    ("boot.kernelArguments", ["a=1", "b c"], "boot.kernelArguments", "'b c' is not one argument", "without spaces"),
    ("boot.consoles", [""], "boot.consoles", "'' is not one argument", "write one argument per list item"),
    ("dns.type", "route66", "dns.type", "one of the existing types", "'rfc2136', 'route53', 'cloudflare', 'lexicon'"),
    ("dns", {"type": "none", "nameserver": "x"}, "dns.nameserver", "there is no such setting", ""),
    ("dns", {"type": "cloudflare", "authToken": "x", "ttl": 30}, "dns.ttl", "greater than or equal to 60", "correct"),
    ("dns", {**_ROUTE53, "zoneId": "/hostedzone/Z1"}, "dns.zoneId", "it is not an id of a hosted zone", "without"),
    ("dns", {"type": "lexicon", "service": "gandy"}, "dns.service", "has no such service", "did you mean 'gandi'?"),
    ("dns", {"type": "lexicon", "service": "zzzzz"}, "dns.service", "has no such service", "lexicon --help"),
    ("dns", {"type": "lexicon", "service": "route53"}, "dns.service", "a type of its own", "set dns.type to route53"),
    ("dns", {"type": "lexicon", "service": "gandi", "options": {"authtoken": "x"}}, "dns.options.authtoken",
     "service gandi has no option authtoken", "did you mean 'auth_token'?"),
    ("dns.reverseZones", ["198.51.100.0/25"], "dns.reverseZones", "does not end at the end of a label", "8, 16 or 24"),
    ("dns.reverseZones", ["facility.test"], "dns.reverseZones", "neither a reverse zone nor a network", "in-addr.arpa"),
    ("dns.reverseZones", ["198.51.100.0/24", "100.51.198.in-addr.arpa"], "dns.reverseZones", "named twice", "once"),
    ("dns.propagation", "none", "dns.propagation", "it should be 'authoritative' or 'service'", "all name servers"),
    ("dns", {**_DELEGATE, "parentServers": ["ns1.example.com"]}, "dns.parentServers", "it is not an IP address",
     "give the address"),
    ("dns.server", "ns1.example.com", "dns.server", "it is not an IP address", "zone's primary"),
    ("dns.port", 0, "dns.port", "it should be greater than or equal to 1", "description: the server's port"),
    ("dns.port", 65536, "dns.port", "it should be less than or equal to 65535", "description: the server's port"),
    ("dns.ttl", 0, "dns.ttl", "it should be greater than or equal to 1", "seconds that resolvers may keep"),
    ("dns.ttl", 86401, "dns.ttl", "it should be less than or equal to 86400", "seconds that resolvers may keep"),
    ("dns.zone", "other.com", "dns.zone", "lab.example.com is not within the zone other.com",
     "set dns.zone to a parent"),
    ("dns.tsig.name", _ABSENT, "dns.tsig.name", "it is required", "--path 'metal-ipi:dns.tsig.name' <value>"),
    ("dns.tsig.algorithm", "hmac-md5", "dns.tsig.algorithm", "it should be 'hmac-sha256'", "hmac-sha384 or"),
    ("dns.tsig.secret", "not base64!", "dns.tsig.secret", "it is not base64", "tsig-keygen"),
    ("apiAddress", {"type": "vip"}, "apiAddress.type", "one of the existing types", "'kube-vip', 'external'"),
    ("apiAddress", {"type": "kube-vip", "address": "192.0.2.0/24"}, "apiAddress.address", "an IPv4", "without prefix"),
    ("apiAddress", {"type": "external", "address": "lb.test"}, "apiAddress.address", "not an IPv4 address", "give one"),
    ("apiAddress", {"type": "kube-vip", "address": "224.0.0.18"}, "apiAddress.address", "a multicast address",
     "single"),
    ("apiAddress", {"type": "kube-vip", "address": "127.0.0.5"}, "apiAddress.address", "a loopback address", "single"),
    ("apiAddress", {"type": "kube-vip", "address": "169.254.9.9"}, "apiAddress.address", "a link-local",
     "a single host"),
    ("apiAddress", {"type": "kube-vip", "address": "0.0.0.0"}, "apiAddress.address", "the unspecified",
     "a single host"),
    ("apiAddress", {"type": "external", "address": "255.255.255.255"}, "apiAddress.address", "the broadcast", "single"),
    ("apiAddress", {"type": "external", "address": "239.1.1.1"}, "apiAddress.address", "a multicast address", "single"),
    ("apiAddress", {"type": "external"}, "apiAddress.address", "it is required",
     "--path 'metal-ipi:apiAddress.address'"),
    ("apiAddress", {"type": "kube-vip", "image": "kube-vip:latest"}, "apiAddress.image", "not pinned", "@sha256:"),
    ("apiAddress", {"type": "kube-vip", "image": "host:5000/kube-vip"}, "apiAddress.image", "not pinned", "v0.9.2"),
    ("apiAddress", {"type": "kube-vip", "image": "x'$(reboot)':1"}, "apiAddress.image", "not a name of an", "v0.9.2"),
    ("apiAddress", {"type": "external", "address": "192.0.2.1", "image": "x:1"}, "apiAddress.image",
     "there is no such setting", "remove it; possible here: address, ipv6Address"),
    ("apiAddress", {"type": "kube-vip", "mode": "arp"}, "apiAddress.address", "reserved addresses are routed", "give"),
    ("apiAddress", {"type": "kube-vip", "mode": "arp", "address": "192.0.2.9", "interface": "bond 0"},
     "apiAddress.interface", "it is not a name of an interface", "e.g. bond0.10"),
    ("apiAddress", {"type": "kube-vip", "interface": "bond0"}, "apiAddress.interface", "on no network's interface",
     "remove it"),
    ("apiAddress", {"type": "kube-vip", "holdSeconds": 2}, "apiAddress.holdSeconds", "greater than or equal to 3", ""),
    ("apiAddress", {"type": "kube-vip", "keepaliveSeconds": 2}, "apiAddress.keepaliveSeconds",
     "more than a third of holdSeconds (3)", "lower it"),
    ("apiAddress", {"type": "external", "address": "192.0.2.1"}, "machineConfigServer.allowedNetworks",
     "no machine could get its configuration", "the networks from which the load balancer connects"),
    ("apiAddress", {"type": "platform", "address": "127.0.0.5"}, "apiAddress.address", "a loopback address", "single"),
    ("apiAddress", {"type": "platform"}, "apiAddress.address", "it is required", "'metal-ipi:apiAddress.address'"),
    ("ingressAddress", {"type": "vip"}, "ingressAddress.type", "one of the existing types", "'external', 'platform'"),
    ("ingressAddress", {"type": "kube-vip", "mode": "arp"}, "ingressAddress.address", "it is needed with mode arp", ""),
    ("ingressAddress", {"type": "kube-vip", "image": "kube-vip"}, "ingressAddress.image", "not pinned", "v0.9.2"),
    ("ingressAddress", {"type": "kube-vip", "holdSeconds": 2}, "ingressAddress.holdSeconds", "equal to 3", ""),
    ("ingressAddress", {"type": "external", "address": "lb.test"}, "ingressAddress.address", "an IPv4 address", "give"),
    ("ingressAddress", {"type": "external"}, "ingressAddress.address", "it is required", "ingressAddress.address'"),
    ("ingressAddress", {"type": "platform", "address": "224.0.0.18"}, "ingressAddress.address", "a multicast", ""),
    ("ingressAddress", {"type": "dns", "address": "192.0.2.9"}, "ingressAddress.address", "no such setting", ""),
    ("machineConfigServer", {"allowedNetworks": ["10.0.0.1/8"]}, "machineConfigServer.allowedNetworks[0]",
     "'10.0.0.1/8' is not a network: 10.0.0.1/8 has host bits set", "such as 10.64.0.0/24"),
    ("artifacts.type", "ftp", "artifacts.type", "one of the existing types",
     "set it to one of: 'ssh', 's3'"),
    ("artifacts.type", _ABSENT, "artifacts.type", "one of the existing types", "set it to one of: 's3', 'ssh'"),
    ("artifacts.port", 70000, "artifacts.port", "it should be less than or equal to 65535", "description: its SSH "
        "port"),
    (
        "artifacts",
        {
            "type": "ssh",
            "host": "h",
            "user": "u",
            "hostKey": PUBLIC_KEY,
            "privateKey": "k",
            "baseUrl": "https://h",
            "matchbox": "/var/lib/matchbox",
        },
        "artifacts.matchbox",
        "platform equinix-metal boots its machines itself",
        "remove it",
    ),
    ("artifacts", {**_S3, "accessKeyId": "a", "secretAccessKey": "b", "region": 1}, "artifacts.region",
     "it should be a text", "write it in quotes"),
    ("artifacts.directory", "srv/www", "artifacts.directory", "it is not absolute", "from / on"),
    ("artifacts.hostKey", f"boot {PUBLIC_KEY}", "artifacts.hostKey", "it is not an SSH public key", "ssh-keyscan"),
    ("artifacts.baseUrl", "http://boot/artifacts", "artifacts.baseUrl", "it is not an https URL", "give the https URL"),
    ("artifacts.bootBaseUrl", "tftp://boot/x", "artifacts.bootBaseUrl", "it is not an http(s) URL", "the firmware"),
    ("install.distribution", "rke", "install.distribution", "it should be 'openshift' or 'okd'", "openshift or okd"),
    ("install.pullSecret", "hunter2", "install.pullSecret", 'JSON with an object "auths"', "console.redhat.com"),
    ("preflight", {"overrides": {"a": "why"}}, "preflight.overrides.a.[key]", "it should be", "correct"),
    ("preflight", {"overrides": {"runs": "mine"}}, "preflight.overrides.runs.[key]", "it should be", "correct"),
    ("preflight", {"overrides": {"tpm": " "}}, "preflight.overrides.tpm", "not a reason", "3 to 200"),
    ("preflight", {"overrides": {"tpm": "why"}, "excused": ["tpm"]}, "preflight.excused", "in overrides", "remove it"),
    ("preflight.live", {"overrides": {"a": "why"}}, "preflight.live.overrides.a.[key]", "it should be", "correct"),
    ("preflight.live", {"overrides": {"mtu": "x"}}, "preflight.live.overrides.mtu", "not a reason", "3 to 200"),
    ("install.releaseImage", "quay.io/a/b:4.19", "install.releaseImage", "an image by digest", "oc adm release"),
    ("install.pullSecret", '{"auths":[]}', "install.pullSecret", "it is not a pull secret", "--secret"),
    ("ssh", {"authorizedKeys": ["ssh-dss AAAA"]}, "ssh.authorizedKeys", "an SSH public key", "content of a .pub file"),
    ("ssh", {"authorizedKeys": ["ssh-ed25519"]}, "ssh.authorizedKeys", "not an SSH public key",
     "'ssh-ed25519 AAAA... name'"),
    *(
        ("timeouts", {name: 0}, f"timeouts.{name}", "it should be greater than or equal to 1", "description: ")
        for name in (
            "machinesActive",
            "machinesReachable",
            "apiAnswers",
            "bootstrapComplete",
            "nodesReady",
            "installComplete",
        )
    ),
    (
        "installConfig",
        {"proxy": {"httpProxy": "http://192.0.2.7", "noProxy": "*.example.com"}},
        "installConfig.proxy.noProxy",
        "'*.example.com' is not a domain, address or network",
        "give them in lower case, with commas",
    ),
    (
        "installConfig",
        {"capabilities": {"baselineCapabilitySet": "v3.11"}},
        "installConfig.capabilities.baselineCapabilitySet",
        "it is not a set of capabilities",
        "give None, vCurrent, or v and a minor release",
    ),
    (
        "installConfig",
        {"capabilities": {"additionalEnabledCapabilities": ["a capability"]}},
        "installConfig.capabilities.additionalEnabledCapabilities",
        "'a capability' is not a name of a capability",
        "give e.g. NodeTuning",
    ),
    *(
        ("machineConfig", value, f"machineConfig.{path}", why, remedy)
        for value, path, why, remedy in (
            ({"ntpServers": ["a", "a"]}, "ntpServers", "'a' is listed twice", "remove one"),
            ({"ntpServers": ["a b"]}, "ntpServers[0]", "neither a host's name nor an IP address", "the address alone"),
            ({"extensions": ["two-node-ha"]}, "extensions[0]", "it should be 'ipsec', 'kerberos'", "additional"),
            ({"roles": []}, "roles", "at least 1 item", "ntpServers and extensions"),
            ({"diskEncryption": {}}, "diskEncryption", "nothing is set that opens the disks", "set tpm2, or name"),
            (
                {"diskEncryption": {"tpm2": True, "threshold": 2}},
                "diskEncryption.threshold",
                "there are only 1 that could open the disks",
                "lower it, or name more Tang servers",
            ),
            (
                {"diskEncryption": {"tang": [{"url": "http://192.0.2.7", "thumbprint": "x"}]}},
                "diskEncryption.tang[0].thumbprint",
                "it is not a thumbprint of a key",
                "`tang-show-keys`",
            ),
            ({"containerStorage": {"device": "/dev/sdb"}}, "containerStorage.device", "kernel names", "a stable name"),
        )
    ),
    *(
        (role, {"labels": {key: value}}, f"{role}.labels{at}", why, remedy)
        for role in ("controlPlane", "workers")
        for key, value, at, why, remedy in (
            ("a b", "x", ".a b.[key]", "it is not a key of labels", "a domain before it"),
            ("Example.com/x", "x", ".Example.com/x.[key]", "it is not a key of labels", "example.com/rack"),
            ("kubernetes.io/hostname", "x", ".kubernetes.io/hostname.[key]", "kubelets set this", "another key"),
            ("a", "-x", ".a", "it is not a value of labels", "beginning and ending with"),
        )
    ),
    ("workers", {"taints": [{"key": "a"}]}, "workers.taints[0].effect", "it is required", "pulumi config set"),
    ("workers", {"taints": [{"key": "a", "effect": "Never"}]}, "workers.taints[0].effect", "it should be 'NoSchedule'",
     "no new pods"),
    ("workers", {"taints": [{"key": "node.kubernetes.io/x", "effect": "NoExecute"}]}, "workers.taints[0].key",
     "Kubernetes sets and removes this taint", "another key"),
    ("workers", {"taints": [{"key": "a", "value": "x y", "effect": "NoExecute"}]}, "workers.taints[0].value",
     "it is not a value of labels", "or nothing"),
    ("workers", {"taints": [{"key": "a", "value": value, "effect": "NoExecute"} for value in "xy"]}, "workers.taints",
     "a with NoExecute is listed twice", "keep one of them"),
    *(
        ("dayTwo", value, f"dayTwo.{where}", why, remedy)
        for value, where, why, remedy in (
            ({"catalog": "Red Hat"}, "catalog", "it is not a name of a package", "oc get packagemanifests"),
            ({"lvmStorage": {}}, "lvmStorage.disks", "it is required", "pulumi config set"),
            ({"lvmStorage": {"disks": []}}, "lvmStorage.disks", "it lists no disk", "uses all empty ones"),
            ({"lvmStorage": {"disks": ["/dev/sdb"]}}, "lvmStorage.disks[0]", "kernel names", "a stable name"),
            ({"lvmStorage": {"disks": [_DISK, _DISK]}}, "lvmStorage.disks", "a disk is listed twice", "list it once"),
            ({"lvmStorage": {"disks": [_DISK], "deviceClass": "VG"}}, "lvmStorage.deviceClass", "an object", "a-z"),
            ({"lvmStorage": {"disks": [_DISK], "channel": "stable 4"}}, "lvmStorage.channel", "not a name of a channel",
             "oc get packagemanifest"),
            ({"lvmStorage": {"disks": [_DISK], "thinPool": {"sizePercent": 9}}}, "lvmStorage.thinPool.sizePercent",
             "greater than or equal to 10", "percent"),
            ({"lvmStorage": {"disks": [_DISK], "thinPool": {"overprovisionRatio": 101}}},
             "lvmStorage.thinPool.overprovisionRatio", "less than or equal to 100", "how many times"),
            ({"nmState": {"policies": [{"name": "a", "desiredState": {}}]}}, "nmState.policies[0].desiredState",
             "it is empty", "set the changes"),
            ({"nmState": {"policies": [{"name": "a", "desiredState": {"interface": []}}]}},
             "nmState.policies[0].desiredState", "interface is not a part", "give dns-resolver, interfaces"),
            ({"nmState": {"policies": [{"name": "a", "desiredState": {"routes": {}}}] * 2}}, "nmState.policies",
             "two policies have the same name", "a name of its own"),
            ({"operators": [{"package": "x"}]}, "operators[0].namespace", "it is required", "pulumi config set"),
            ({"operators": [{"package": "x", "namespace": "openshift-operators"}]}, "operators[0].namespace",
             "belongs to the cluster", "one of its own"),
            ({"operators": [{"package": "x", "namespace": "kube-system"}]}, "operators[0].namespace",
             "belongs to the cluster", "one of its own"),
            ({"operators": [{"package": "x", "namespace": "openshift-ovn-kubernetes"}]}, "operators[0].namespace",
             "belongs to the cluster", "one of its own"),
            ({"operators": [{"package": "x", "namespace": "x", "startingCsv": "x"}]}, "operators[0].startingCsv",
             "it is not a name of a ClusterServiceVersion", "lvms-operator.v4.19.0"),
            ({"operators": [{"package": "x", "namespace": "x", "objects": [{}]}]}, "operators[0].objects[0]",
             "exactly one of file and manifest must be set", "set file, or manifest"),
            ({"operators": [{"package": "x", "namespace": "x", "objects": [{"file": "a", "waitFor": "Ready"}]}]},
             "operators[0].objects[0].waitFor", "it is not a condition to wait for", "condition=<type>"),
            ({"registry": {"type": "nfs"}}, "registry.type", "one of the existing types", "'claim', 's3'"),
            ({"registry": {"type": "claim", "size": 0}}, "registry.size", "greater than or equal to 1", "GiB"),
            ({"registry": {"type": "claim", "storageClass": "A"}}, "registry.storageClass", "an object", "a-z"),
            ({"registry": {"type": "s3", "bucket": "B", "accessKeyId": "a", "secretAccessKey": "b"}},
             "registry.bucket", "it is not a bucket's name", "use up to 63"),
            ({"registry": {"type": "s3", "bucket": "b", "accessKeyId": "a"}}, "registry.secretAccessKey",
             "it is required; only a rehearsal works without it", "--secret"),
            ({"registry": {"type": "empty-dir", "size": 1}}, "registry.size", "there is no such setting", "remove it"),
        )
    ),
    ("timeouts", {"dayTwo": 0}, "timeouts.dayTwo", "greater than or equal to 1", "until an operator"),
    ("lab", {"machines": "docker"}, "lab.machines", "it should be 'libvirt' or 'simulated'", "libvirt (emulated)"),
    ("rehearsal", "yes", "rehearsal", "it should be a valid boolean", "an offline preview"),
    ("platfrom", {"metro": "da"}, "platfrom", "there is no such setting", "did you mean 'platform'?"),
    ("workers", {"cuont": 1}, "workers.cuont", "there is no such setting", "did you mean 'count'?"),
    ("dns.tsig.keyname", "x", "dns.tsig.keyname", "there is no such setting", "did you mean 'name'?"),
    ("boot.zzz", 1, "boot.zzz", "there is no such setting", "remove it; possible here: architecture, consoles"),
    ("artifacts.base_url", "x", "artifacts.base_url", "there is no such setting", "did you mean 'baseUrl'?"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("setting", "value", "path", "why", "remedy"),
    _WRONG,
    ids=[f"{row[0]}-{number}" for number, row in enumerate(_WRONG)],
)
def test_a_wrong_value_is_one_problem_with_cause_and_remedy(
    setting: str, value: Any, path: str, why: str, remedy: str
) -> None:
    assert tells(_problems({setting: value}), path, why, remedy)


def test_every_field_with_a_rule_of_its_own_is_in_the_table() -> None:
    """A validator that is added must be tried: the table has to name every validated field."""
    tried = {row[0].split(".")[-1] for row in _WRONG} | {row[2].split(".")[-1] for row in _WRONG}
    for model in _models(Settings):
        for validator in model.__pydantic_decorators__.field_validators.values():
            for field in validator.info.fields:
                assert model.model_fields[field].alias in tried, f"{model.__name__}.{field}"


def _models(model: Any) -> Iterator[Any]:
    yield model
    for info in model.model_fields.values():
        for argument in (info.annotation, *getattr(info.annotation, "__args__", ())):
            if hasattr(argument, "model_fields"):
                yield from _models(argument)


def test_all_problems_come_in_one_message_in_the_order_of_their_paths() -> None:
    changes = {"workers": {"cuont": 1}, "clusterName": "Bad_Name", "dns.port": 0, "platform.authToken": _ABSENT}
    with pytest.raises(SettingsError) as caught:
        _settings(changes)
    assert str(caught.value) == (
        "the configuration of stack 's1' (stacks/Pulumi.s1.yaml) has 4 problems; nothing was changed\n"
        "  1. metal-ipi:clusterName = Bad_Name\n"
        "      it is not a DNS label\n"
        "      -> use up to 54 of a-z, 0-9 and '-', beginning and ending with a-z or 0-9\n"
        "  2. metal-ipi:dns.port = 0\n"
        "      it should be greater than or equal to 1\n"
        "      -> correct it; the setting's description: the server's port\n"
        "  3. metal-ipi:platform.authToken = (not set)\n"
        "      it is required; only a rehearsal works without it\n"
        "      -> pulumi config set --secret --path 'metal-ipi:platform.authToken' <value>\n"
        "  4. metal-ipi:workers.cuont = [not shown]\n"
        "      there is no such setting\n"
        "      -> did you mean 'count'?"
    )


@pytest.mark.parametrize(
    ("meant", "written"), [("clusterName", "cluster_name"), ("metro", "Metor"), ("hostKey", "host-key"), (None, "xyz")]
)
def test_the_nearest_name_is_suggested(meant: str | None, written: str) -> None:
    assert nearest(written, ["clusterName", "metro", "hostKey"]) == meant


_CANARY = "hunter2-canary"


def _misplaced() -> Iterator[tuple[str, dict[str, Any]]]:
    """Configurations that are wrong in or around a secret."""
    secrets = ["platform.authToken", "dns.tsig.secret", "artifacts.privateKey", "install.pullSecret"]
    others = {"secretAccessKey", "password", "kubeconfig", "httpProxy", "httpsProxy"}
    assert {path.split(".")[-1] for path in secrets} | others == SECRET_NAMES
    for path in secrets:
        section, _, name = path.rpartition(".")
        yield f"{path}: a list", {path: [_CANARY]}
        yield f"{path}: an object", {path: {"value": _CANARY}}
        yield f"{path}: beside another problem", {path: _CANARY, f"{section}.nonsense": 1, "clusterName": "-"}
        yield f"{path}: name misspelt", {f"{section}.{name}s": _CANARY}
        yield f"{path}: section misspelt", {f"{section}x": {name: _CANARY}}
        yield f"{path}: section within an unknown one", {"unknown": {section: {name: _CANARY}}}
        yield f"{path}: section a list", {section: [{name: _CANARY}]}
        yield f"{path}: section a text", {section: json.dumps({name: _CANARY})[:-1]}
        yield f"{path}: in a plain setting", {"platform.metro": {name: _CANARY}}
        yield f"{path}: deep in a plain setting", {"boot.consoles": [{name: _CANARY}]}
        yield f"{path}: at the top", {name: _CANARY}
    yield "s3", {"artifacts": {**_S3, "accessKeyId": "a", "secretAccessKey": [_CANARY]}}
    yield "s3 within ssh", {"artifacts.secretAccessKey": _CANARY}
    yield "without type", {"artifacts": {"privateKey": _CANARY}}
    yield "a rule of the section", {"platform.authToken": _CANARY, "platform.facilities": ["da11"]}
    yield "a rule of the tree", {"platform.authToken": _CANARY, "dns.zone": "other.com"}


@pytest.mark.parametrize("changes", [pytest.param(changes, id=name) for name, changes in _misplaced()])
def test_no_message_shows_a_secret(changes: dict[str, Any]) -> None:
    with pytest.raises(SettingsError) as caught:
        _settings(changes)
    assert _CANARY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert _CANARY not in repr(caught.value.problems)


def test_secrets_are_not_in_the_settings_repr() -> None:
    text = repr(_settings())
    assert "t0ken" not in text and "c2VjcmV0" not in text and "BEGIN" not in text


_NEEDED = [
    ("platform.authToken", {}),
    ("platform.projectId", {}),
    ("dns.server", {}),
    ("dns.tsig.secret", {}),
    *((f"dns.{name}", {"dns": _ROUTE53}) for name in ("accessKeyId", "secretAccessKey")),
    *((f"dns.{name}", {"dns": _DELEGATE}) for name in ("server", "tsig.secret")),
    ("dns.authToken", {"dns": {"type": "cloudflare", "authToken": "t"}}),
    ("install.pullSecret", {}),
    *((f"artifacts.{name}", {}) for name in ("host", "user", "hostKey", "privateKey", "baseUrl")),
    *(
        (f"artifacts.{name}", {"artifacts": {**_S3, "accessKeyId": "a", "secretAccessKey": "b"}})
        for name in ("accessKeyId", "secretAccessKey")
    ),
]


@pytest.mark.parametrize(("path", "changes"), _NEEDED)
def test_only_a_rehearsal_does_without(path: str, changes: dict[str, Any]) -> None:
    (problem,) = _problems({**changes, path: _ABSENT})
    assert (problem.path, problem.value) == (f"metal-ipi:{path}", "(not set)")
    assert ("--secret" in problem.remedy) == (path.rsplit(".", maxsplit=1)[-1] in SECRET_NAMES)
    assert _settings({**changes, path: _ABSENT, "rehearsal": True}).rehearsal is True


@pytest.mark.parametrize("count", [4, 5])
def test_larger_control_planes_are_there_from_a_release_on(count: int) -> None:
    size = {"controlPlane": {"count": count}}
    found = _problems({**size, "openshiftVersion": "4.17.9"})
    assert tells(found, "controlPlane.count", "from 4.18 on, and openshiftVersion is 4.17.9", "have 3")
    assert _settings({**size, "openshiftVersion": "4.18.0-okd-scos.1"}).control_plane.count == count


def test_a_stream_is_needed_one_way_or_the_other() -> None:
    assert tells(_problems({"boot": {"install": _INSTALL}}), "boot.streamFile", "")
    boot = {"streamFile": "stacks/rhcos-4.21.json", "install": _INSTALL}
    assert _settings({"boot": boot}).boot.stream_file == "stacks/rhcos-4.21.json"


def test_nodes_have_names_that_their_labels_can_hold() -> None:
    """`da11-control-plane-0.da11.<base>` of 63 characters, and of 64."""
    bases = ["m" * length + ".example.com" for length in (25, 26)]
    changes: list[dict[str, Any]] = [{"clusterName": "da11", "baseDomain": base} for base in bases]
    assert len(f"da11-control-plane-0.{_settings(changes[0]).domain}") == 63
    name = f"da11-control-plane-0.da11.{bases[1]}"
    assert tells(_problems(changes[1]), "clusterName", f"the machine name {name} has 64 characters")


def test_nodes_are_installed_to_a_disk_where_they_have_one() -> None:
    why = "writes the release's operating system to its disk at the first boot"
    assert tells(_problems({"boot.install": _ABSENT}), "boot.install", why)
    assert _settings({"boot.install": _ABSENT, "boot.diskless": True}).boot.install is None


@pytest.mark.parametrize(
    "path", ["platform.authToken", "dns.tsig.secret", "artifacts.privateKey", "install.pullSecret"]
)
def test_the_rehearsals_placeholder_is_no_secret_for_a_real_change(path: str) -> None:
    (problem,) = _problems({path: REHEARSAL})
    assert (problem.path, problem.value) == (f"metal-ipi:{path}", "(not set)")
    _settings({path: REHEARSAL, "rehearsal": True})


def test_okd_needs_no_pull_secret() -> None:
    assert _settings({"install": {"distribution": "okd"}}).install.pull_secret is None


def test_a_rehearsal_still_checks_what_is_there() -> None:
    (problem,) = _problems({"rehearsal": True, "platform.projectId": "x"})
    assert problem.why == "it is not a UUID"


def test_the_empty_defaults_of_the_project_file_mean_not_set() -> None:
    empty = {"clusterName": "", "platform": "{}", "workers": "{}", "timeouts": "{}", "controlPlane": "{}"}
    with pytest.raises(SettingsError) as caught:
        parse({**config_text(_COMPLETE), **empty}, "s1")
    assert [(problem.path, problem.why) for problem in caught.value.problems] == [
        ("metal-ipi:clusterName", "it is required"),
        ("metal-ipi:platform", "it is required"),
    ]


def test_texts_that_look_like_numbers_stay_texts() -> None:
    assert _settings({"clusterName": "123"}).cluster_name == "123"


def test_the_project_file_declares_every_setting_and_no_other() -> None:
    declared = yaml.safe_load((_ROOT / "Pulumi.yaml").read_text())["config"]
    known = {info.alias: info for kind in (Settings, HubSettings) for info in kind.model_fields.values()}
    assert set(declared) == set(known) - {"lab"}
    # A truth value that may be left out has no empty default of its own type; the engine keeps all as texts.
    types: dict[Any, str] = {str: "string", bool: "boolean", bool | None: "string", Optional[PoolName]: "string"}  # noqa: UP045
    for name, entry in declared.items():
        assert entry["type"] == types.get(known[name].annotation, "object"), name  # pyright: ignore
        assert entry["default"] in ("", {}, False), "a default that means something belongs into stacks/settings.py"
