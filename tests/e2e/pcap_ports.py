"""A switch between capture files: what goes in is a file, what comes out are files."""
import frames
from switch import Switch


def pcap_port(name, index, mac, *, source=None, sink=None, more=''):
    """A port that reads a capture or writes one; with neither end it would be a null port."""
    ends = (f',rx_pcap={source}' if source else '') + (f',tx_pcap={sink}' if sink else '')
    return (f'  - {{name: {name}, device: "net_pcap{index}{ends}", mac: {mac}, mtu: 4200, rate: unlimited, '
            f'link_state: always-up{more}}}\n')


def through(scene, source, configuration, sinks):
    """Sends a capture through a switch until nothing moves; (summary, frames of each sink)."""
    summary = Switch(scene, configuration, arguments=('--until-idle', '500ms'), wait=False).wait(30)
    return summary, [frames.read_pcap(sink) if sink.exists() else [] for sink in sinks]
