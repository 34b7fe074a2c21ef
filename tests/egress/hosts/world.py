#!/usr/bin/python3 -B
"""The internet of the test bed: who has which address. Everything else asks here.

    world.py addresses    every address of the internet, one in a line
    world.py shell        what the script `bed` needs, as variables
"""
import sys

# The link between the edge, where the server under test runs, and the internet. The edge's own addresses
# look like anybody's: only knowing them keeps a guard from dialling them.
EDGE4, GATEWAY4 = "45.67.89.2", "45.67.89.1"
EDGE6, GATEWAY6 = "2a00:1450::2", "2a00:1450::1"

A, B, REGISTRY, TALK, EVIL = ("93.184.216.34", "93.184.216.35", "93.184.216.36", "93.184.216.37",
                              "198.41.0.4")
SIX, EVIL6 = "2606:2800::1", "2606:2800::bad"
DNS, PROXY = "192.5.6.30", "185.60.216.35"

# Addresses at which nobody from a sandbox may ever arrive, whatever its policy says. The same web server
# listens at all of them: what does arrive is on record.
METADATA = ["169.254.169.254", "100.100.100.200", "192.0.0.192", "fd00:ec2::254"]
INTERNAL = ["10.9.9.9", "172.16.0.1", "192.168.0.1", "100.64.0.1", "198.18.0.1", "203.0.113.1",
            "fd00::9", "64:ff9b::a09:909", "2002:a09:909::1"]

# Web servers: address -> who it says it is. Ports 80 and 8080 plain, 443 and 8443 with TLS.
WEB = {A: "a", B: "b", REGISTRY: "registry", TALK: "talk", EVIL: "evil", SIX: "six", EVIL6: "evil",
       **{address: "metadata" for address in METADATA},
       **{address: "internal" for address in INTERNAL}}
PLAIN_PORTS, TLS_PORTS = (80, 8080), (443, 8443)

# Where the attacker waits for anything else.
SINK = {EVIL: (22, 25, 53, 853, 3306, 5432, 6379, 9999), EVIL6: (22, 53, 853, 9999)}
SINK_UDP = {EVIL: (53, 123, 443, 9999), EVIL6: (53, 443, 9999)}

ECHO_PORTS = (7, 9999)  # TCP and UDP, at A, TALK and SIX
BANNER_PORT = 22        # at TALK: the server speaks first

# The SOCKS5 proxies: one that works and wants a password, and those that do not work.
PROXY_PORT, PROXY_USER, PROXY_PASSWORD = 1080, "bed-user", "bed-password"
BROKEN_PROXIES = {1081: "refuses-password", 1082: "garbage", 1083: "hangs", 1084: "refuses",
                  1085: "closes", 1086: "no-method"}


def addresses():
    return list(dict.fromkeys([*WEB, DNS, PROXY]))


def shell():
    return [f"{name}={value}" for name, value in {
        "edge4": EDGE4, "edge6": EDGE6, "gateway4": GATEWAY4, "gateway6": GATEWAY6, "dns": DNS,
        "proxy": PROXY, "proxy_port": PROXY_PORT, "proxy_user": PROXY_USER,
        "proxy_password": PROXY_PASSWORD}.items()]


if __name__ == "__main__":
    print("\n".join({"addresses": addresses, "shell": shell}[sys.argv[1]]()))
