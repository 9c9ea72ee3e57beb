"""MariaDB beside Ironic: one pod with a volume, TLS for all connections, and an account for Ironic."""

from __future__ import annotations

from metal_ipi.components.provisioning import objects
from metal_ipi.components.provisioning.contract import DATABASE_PORT, IronicArgs, OwnDatabase
from metal_ipi.components.provisioning.objects import Object

NAME = "database"
SCHEMA = "ironic"
"""The name of Ironic's database."""
TLS = "database-tls"
SETUP = "database-setup"
"""The Secret with SQL statements that run at each start, or at a rotation of passwords."""
_DATA = "/var/lib/mysql"
_SOCKET = "/run/mysqld/mysqld.sock"
_SERVER = f"""[mariadbd]
user=
datadir={_DATA}/data
socket={_SOCKET}
pid-file=/run/mysqld/mysqld.pid
port={DATABASE_PORT}
bind-address=0.0.0.0
skip-name-resolve
require-secure-transport=ON
ssl-cert=/etc/database/tls/tls.crt
ssl-key=/etc/database/tls/tls.key
tls-version=TLSv1.2,TLSv1.3
init-file=/etc/database/setup/start.sql
innodb-buffer-pool-size=64M
performance-schema=OFF
log-warnings=1
max-connections=500
"""
_START = f"""set -eu
if [ ! -e {_DATA}/data/ready ]; then
    # What a start that was killed left half made is made again.
    rm -rf {_DATA}/data
    mariadb-install-db --no-defaults --datadir={_DATA}/data --auth-root-authentication-method=normal --skip-test-db
    touch {_DATA}/data/ready
fi
renewed() {{
    # The server reads a renewed certificate when it is told to; connections that there are stay.
    known=$(cksum < /etc/database/tls/tls.crt)
    while sleep 5; do
        now=$(cksum < /etc/database/tls/tls.crt)
        if [ "$now" != "$known" ] && mariadb --defaults-file=/etc/database/setup/local.cnf -e 'FLUSH SSL'; then
            echo 'the certificate was renewed, and is served from now on'
            known=$now
        fi
    done
}}
renewed &
exec mariadbd --defaults-file=/etc/database/server/server.cnf
"""


def address(namespace: str) -> str:
    """Its DNS name within the hub."""
    return f"{NAME}.{namespace}.svc"


def server_name(namespace: str) -> list[str]:
    """The names in its certificate."""
    return [address(namespace), f"{address(namespace)}.cluster.local", NAME]


def configuration(args: IronicArgs) -> Object:
    """The ConfigMap with the server's configuration and its start script."""
    return objects.manifest("ConfigMap", NAME, args.namespace, NAME, data={"server.cnf": _SERVER, "start.sh": _START})


def start_statements(administrator: str, password: str) -> str:
    """SQL that the server runs at each start: it allows only the administrator, and only with the password."""
    return (
        "\n".join(  # noqa: S608 - names and passwords are of our own making
            [
                "DELETE FROM mysql.global_priv WHERE User = '' OR (User = 'root' AND Host <> 'localhost');",
                "FLUSH PRIVILEGES;",
                f"CREATE DATABASE IF NOT EXISTS {SCHEMA} CHARACTER SET utf8mb3;",
                f"CREATE OR REPLACE USER '{administrator}'@'%' IDENTIFIED BY '{password}' REQUIRE SSL;",
                f"GRANT ALL PRIVILEGES ON *.* TO '{administrator}'@'%' WITH GRANT OPTION;",
                f"CREATE OR REPLACE USER 'root'@'localhost' IDENTIFIED BY '{password}';",
                "GRANT ALL PRIVILEGES ON *.* TO 'root'@'localhost' WITH GRANT OPTION;",
            ]
        )
        + "\n"
    )


def account_statements(username: str, password: str, *kept: str) -> str:
    """SQL that creates Ironic's account, and deletes older accounts except those in `kept`: the previous rotation's
    account, and the administrators'."""
    keep = ", ".join(f"'{each}'" for each in (username, *kept) if each)
    return (
        "\n".join(  # noqa: S608 - names and passwords are of our own making
            [
                f"CREATE OR REPLACE USER '{username}'@'%' IDENTIFIED BY '{password}' REQUIRE SSL;",
                f"GRANT ALL PRIVILEGES ON {SCHEMA}.* TO '{username}'@'%';",
                "SELECT GROUP_CONCAT(CONCAT(QUOTE(User), '@', QUOTE(Host))) INTO @old FROM mysql.global_priv"  # noqa: S608
                f" WHERE (User LIKE 'ironic-%' OR User LIKE 'administrator-%') AND User NOT IN ({keep});",
                "SET @drop = IF(@old IS NULL, 'DO 0', CONCAT('DROP USER ', @old));",
                "PREPARE dropping FROM @drop;",
                "EXECUTE dropping;",
            ]
        )
        + "\n"
    )


def client(username: str, password: str, namespace: str) -> str:
    """An option file for MariaDB's client programs: other users could read a password on a command line."""
    return (
        f"[client]\nhost={address(namespace)}\nport={DATABASE_PORT}\nuser={username}\npassword={password}\n"
        "ssl-ca=/etc/database/ca/ca.crt\nssl-verify-server-cert\n"
    )


def local_client(password: str) -> str:
    """The option file for clients within the server's own pod."""
    return f"[client]\nsocket={_SOCKET}\nuser=root\npassword={password}\n"


def service(args: IronicArgs) -> Object:
    """The Service, which gives the server its DNS name."""
    ports = [{"name": "mysql", "port": DATABASE_PORT, "targetPort": "mysql"}]
    return objects.manifest(
        "Service", NAME, args.namespace, NAME, spec={"selector": objects.selector(NAME), "ports": ports}
    )


def server(args: IronicArgs, database: OwnDatabase) -> Object:
    """The StatefulSet of the server."""
    # `ping` succeeds without an account, if the server is alive.
    ping = ["mariadb-admin", "--no-defaults", f"--socket={_SOCKET}", "ping"]
    answers = {"exec": {"command": ping}, "periodSeconds": 5, "timeoutSeconds": 5}
    container = objects.container(
        NAME,
        args.images.database,
        ["/bin/sh", "/etc/database/server/start.sh"],
        [
            objects.mount("data", _DATA),
            objects.mount("run", "/run/mysqld"),
            objects.mount("tmp", "/tmp"),  # noqa: S108 - a path in a container
            objects.mount("server", "/etc/database/server", read_only=True),
            objects.mount("setup", "/etc/database/setup", read_only=True),
            objects.mount("tls", "/etc/database/tls", read_only=True),
        ],
        ports=[{"name": "mysql", "containerPort": DATABASE_PORT}],
        startupProbe={**answers, "periodSeconds": 2, "failureThreshold": 150},
        readinessProbe=answers,
        livenessProbe={**answers, "periodSeconds": 20, "failureThreshold": 6},
        resources={"requests": {"memory": "192Mi", "cpu": "50m"}},
    )
    volumes = [
        objects.empty("run"),
        objects.empty("tmp"),
        objects.of_map("server", NAME),
        objects.of_secret("setup", SETUP, {name: name for name in ("start.sql", "local.cnf")}),
        objects.of_secret("tls", TLS, {"tls.crt": "tls.crt", "tls.key": "tls.key"}),
    ]
    template = objects.pod(
        NAME,
        {"containers": [container], "volumes": volumes, "terminationGracePeriodSeconds": 60},
        {"metal-ipi/made-of": objects.digest(_SERVER, _START)},
    )
    return objects.manifest(
        "StatefulSet",
        NAME,
        args.namespace,
        NAME,
        spec={
            "serviceName": NAME,
            "replicas": 1,
            **objects.pods_of(NAME, template),
            "volumeClaimTemplates": [
                {
                    "metadata": {"name": "data"},
                    "spec": objects.claim("data", database.storage, database.storage_class),
                }
            ],
        },
    )


def accounts_job(args: IronicArgs) -> Object:
    """The job that creates Ironic's account for this rotation."""
    # Before the first job of a rotation, the server knows only the previous rotation's administrator.
    known = "mariadb --defaults-extra-file=client.cnf -e 'DO 0'"
    first = "mariadb --defaults-extra-file=previous.cnf < start.sql"
    then = "mariadb --defaults-extra-file=client.cnf < accounts.sql"
    command = f"set -eu; cd /etc/database/setup; {known} || {first}; {then}"
    container = objects.container(
        "accounts",
        args.images.database,
        ["/bin/sh", "-c", command],
        [
            objects.mount("setup", "/etc/database/setup", read_only=True),
            objects.mount("ca", "/etc/database/ca", read_only=True),
        ],
    )
    volumes = [
        objects.of_secret(
            "setup", SETUP, {name: name for name in ("client.cnf", "previous.cnf", "start.sql", "accounts.sql")}
        ),
        objects.of_secret("ca", TLS, {"ca.crt": "ca.crt"}),
    ]
    return objects.job(
        f"{NAME}-accounts-{args.rotation}",
        args.namespace,
        f"{NAME}-accounts",
        {"containers": [container], "volumes": volumes},
    )
