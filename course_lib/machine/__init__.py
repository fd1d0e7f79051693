"""Machine models: what a message between two ranks occupies, and how fast a rank computes.

==============================  ================================================================
unit()                          hand calculations: a second a byte, a second a FLOP
stated()                        only given seconds pass: the workers' speeds, say
laptop(), two_laptops()         processes of one laptop; two laptops on an Ethernet cable
measure_laptop()                the laptop this runs on, fitted to real runs
pcie_server(gpus, servers)      GPUs behind PCIe switches, one network adapter a server
dgx_a100, dgx_h100, dgx_b200    nodes of 8 GPUs behind NVSwitch, a NIC for each GPU
nvl72(racks)                    72 GPUs behind NVSwitch
tpu_v4(shape), tpu_v5p(shape)   2D or 3D torus, routed along its links
==============================  ================================================================

Each docstring gives the source of each figure. `model` says what a machine is and how to add one.
"""

from .laptops import Laptops, laptop, stated, two_laptops, unit
from .measured import fit_latency_bandwidth, measure_laptop
from .model import Level, Machine, Route
from .pcie import PcieServers, pcie_server
from .switched import SwitchedNodes, dgx_a100, dgx_b200, dgx_h100, nvl72
from .torus import Torus, tpu_v4, tpu_v5p

__all__ = [
    "Laptops",
    "Level",
    "Machine",
    "PcieServers",
    "Route",
    "SwitchedNodes",
    "Torus",
    "dgx_a100",
    "dgx_b200",
    "dgx_h100",
    "fit_latency_bandwidth",
    "laptop",
    "measure_laptop",
    "nvl72",
    "pcie_server",
    "stated",
    "tpu_v4",
    "tpu_v5p",
    "two_laptops",
    "unit",
]
