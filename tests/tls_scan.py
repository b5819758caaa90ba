"""Scans a service with TLS: it must offer only TLS 1.2, and only cipher suites with forward secrecy and
authenticated encryption.

usage: tls_scan.py PORT. Needs sslscan and nmap; exits non-zero if either finds anything else.
"""

import subprocess
import sys
import xml.etree.ElementTree as xml

port = sys.argv[1]
failed = []


def check(name, holds):
    print(f"{'ok' if holds else 'FAILED'}: {name}")
    if not holds:
        failed.append(name)


def is_secure(suite):
    forward = suite.startswith(("ECDHE-", "TLS_ECDHE_"))
    return forward and ("GCM" in suite or "CHACHA20" in suite)


def run(*command):
    return xml.fromstring(subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout)


result = run("sslscan", "--xml=-", f"127.0.0.1:{port}").find("ssltest")
versions = {f"{each.get('type')}{each.get('version')}" for each in result.findall("protocol") if each.get("enabled") == "1"}
check(f"sslscan finds the versions {sorted(versions)}", versions == {"tls1.2"})
suites = [each.get("cipher") for each in result.findall("cipher")]
check(f"sslscan finds the suites {suites}", suites and all(map(is_secure, suites)))
check("no compression", all(each.get("supported") == "0" for each in result.findall("compression")))
check("no insecure renegotiation", all(each.get("supported") == "0" or each.get("secure") == "1" for each in result.findall("renegotiation")))
check("not vulnerable to heartbleed", all(each.get("vulnerable") == "0" for each in result.findall("heartbleed")))

result = run("nmap", "-Pn", "-n", "-p", port, "--script", "ssl-enum-ciphers", "-oX", "-", "127.0.0.1")
script = result.find(".//script[@id='ssl-enum-ciphers']")
tables = {each.get("key"): each for each in script.findall("table")}
check(f"nmap finds the versions {sorted(tables)}", set(tables) == {"TLSv1.2"})
suites = {each.findtext("elem[@key='name']"): each.findtext("elem[@key='strength']") for each in script.findall(".//table[@key='ciphers']/table")}
check(f"nmap finds the suites {suites}", suites and all(map(is_secure, suites)) and set(suites.values()) == {"A"})
sys.exit(bool(failed))
