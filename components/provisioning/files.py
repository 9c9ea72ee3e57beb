"""Configuration of the web servers (nginx) for boot files and cached images."""

from __future__ import annotations


def nginx_conf(root: str, port: int, *, tls: bool) -> str:
    """The configuration of a server that serves files, without directory listings."""
    # nginx reads certificate files named by a variable for each connection, so it uses a renewed certificate at once.
    pair = "    map $ssl_server_name $pair {\n        default /etc/files/tls/tls;\n    }\n" if tls else ""
    listen = f"listen {port} ssl;\n        ssl_certificate $pair.crt;\n" if tls else f"listen {port};\n"
    keys = "        ssl_certificate_key $pair.key;\n        ssl_protocols TLSv1.2 TLSv1.3;\n" if tls else ""
    return f"""worker_processes 1;
error_log stderr notice;
pid /tmp/nginx.pid;
events {{
    worker_connections 512;
}}
http {{
    access_log off;
    client_body_temp_path /tmp/body;
    proxy_temp_path /tmp/proxy;
    fastcgi_temp_path /tmp/fastcgi;
    uwsgi_temp_path /tmp/uwsgi;
    scgi_temp_path /tmp/scgi;
    types {{ }}
    default_type application/octet-stream;
    sendfile on;
{pair}    server {{
        {listen}{keys}        root {root};
        autoindex off;
        location = /healthz {{
            return 200;
        }}
    }}
}}
"""
