"""What public scanners see of a service that speaks TLS: version 1.2 only, and every cipher suite with
forward secrecy and authenticated encryption.

usage: tls_scan.py PORT. Needs sslscan and nmap; exits non-zero when either sees anything else.
"""

import subprocess
import sys
import xml.etree.ElementTree as xml

port = sys.argv[1]
failed = []


def check(what, holds):
    print(f"{'ok' if holds else 'FAILED'}: {what}")
    if not holds:
        failed.append(what)


def fine(suite):
    forward = suite.startswith(("ECDHE-", "TLS_ECDHE_"))
    return forward and ("GCM" in suite or "CHACHA20" in suite)


def run(*command):
    return xml.fromstring(subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout)


seen = run("sslscan", "--xml=-", f"127.0.0.1:{port}").find("ssltest")
versions = {f"{each.get('type')}{each.get('version')}" for each in seen.findall("protocol") if each.get("enabled") == "1"}
check(f"sslscan sees the versions {sorted(versions)}", versions == {"tls1.2"})
suites = [each.get("cipher") for each in seen.findall("cipher")]
check(f"sslscan sees the suites {suites}", suites and all(map(fine, suites)))
check("no compression", all(each.get("supported") == "0" for each in seen.findall("compression")))
check("no insecure renegotiation", all(each.get("supported") == "0" or each.get("secure") == "1" for each in seen.findall("renegotiation")))
check("not open to heartbleed", all(each.get("vulnerable") == "0" for each in seen.findall("heartbleed")))

found = run("nmap", "-Pn", "-n", "-p", port, "--script", "ssl-enum-ciphers", "-oX", "-", "127.0.0.1")
script = found.find(".//script[@id='ssl-enum-ciphers']")
tables = {each.get("key"): each for each in script.findall("table")}
check(f"nmap sees the versions {sorted(tables)}", set(tables) == {"TLSv1.2"})
suites = {each.findtext("elem[@key='name']"): each.findtext("elem[@key='strength']") for each in script.findall(".//table[@key='ciphers']/table")}
check(f"nmap sees the suites {suites}", suites and all(map(fine, suites)) and set(suites.values()) == {"A"})
sys.exit(bool(failed))
