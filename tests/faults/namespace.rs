//! A network of its own for a test: Linux gives one to a process, and there any address can be this machine's,
//! and names are what the test says. The test binary starts itself again inside.

use std::{io::Write, net::IpAddr, process::Command};

/// Says to the inner run where it is.
const INSIDE: &str = "HUB_TEST_INSIDE_NETWORK";

const SCRIPT: &str = r#"
    ip link set lo up || exit 77
    # Names are asked for at the machine itself, once and not for long.
    resolver=$1 addresses=$2
    shift 2
    printf 'nameserver 127.0.0.1\noptions timeout:1 attempts:1\n' >"$resolver/resolv.conf"
    printf 'hosts: files dns\n' >"$resolver/nsswitch.conf"
    for file in resolv.conf nsswitch.conf; do
        [ ! -e "/etc/$file" ] || mount --bind "$resolver/$file" "/etc/$file" || exit 77
    done
    for address in $addresses; do
        # Some cannot be given to anyone, multicast for one.
        case $address in
            *:*) ip -6 addr add "$address/128" dev lo nodad 2>/dev/null ;;
            *) ip addr add "$address/32" dev lo 2>/dev/null ;;
        esac
    done
    exec "$@"
"#;

/// Runs an ignored test of this binary in a network where these addresses are on loopback. Where the machine
/// does not allow that, says so and skips, unless `HUB_REQUIRE_NETNS=1`.
pub fn run(test: &str, addresses: &[IpAddr]) {
    let Some(flags) = possible() else {
        let told = "no network of its own could be made (`unshare -nm` as root or `unshare -rnm` with user \
                    namespaces, and `ip` of iproute2)";
        assert!(std::env::var("HUB_REQUIRE_NETNS").as_deref() != Ok("1"), "{told}");
        let _ = writeln!(std::io::stderr(), "{test} is SKIPPED: {told}");
        return;
    };
    let addresses: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    let resolver = tempfile::tempdir().unwrap();
    let output = Command::new("unshare")
        .args([flags, "sh", "-c", SCRIPT, "network"])
        .args([resolver.path().as_os_str(), addresses.join(" ").as_ref()])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let told =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(output.status.success(), "{told}");
    assert!(told.contains("1 passed"), "the inner test did not run: {told}");
}

/// Fails a test that was started by hand outside: it would say nothing there.
pub fn assert_inside() {
    assert!(std::env::var_os(INSIDE).is_some(), "this test needs a network of its own");
}

/// The flags with which `unshare` works here.
fn possible() -> Option<&'static str> {
    ["-nm", "-rnm"].into_iter().find(|flags| {
        let tried = Command::new("unshare").args([flags, "ip", "link", "set", "lo", "up"]).output();
        tried.is_ok_and(|output| output.status.success())
    })
}
