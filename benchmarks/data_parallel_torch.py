"""One process of `benchmarks.data_parallel` with PyTorch's DistributedDataParallel and gloo."""

import itertools
import json
import os

import torch
from torch import distributed, nn

from benchmarks.data_parallel import PROCESSES, RATE, SIZES, batch, serve, weights


def main():
    """Trains a network whose gradients are averaged over the processes."""
    config = json.loads(os.environ["TF_CONFIG"])
    rank, address = config["task"]["index"], config["cluster"]["worker"][0]
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"tcp://{address}", rank=rank, world_size=PROCESSES
    )
    layers = []
    for m, n in itertools.pairwise(SIZES):
        layers += [nn.Linear(m, n), nn.ReLU()]
    network = nn.Sequential(*layers[:-1])
    with torch.no_grad():
        for parameter, array in zip(network.parameters(), weights(), strict=True):
            parameter.copy_(torch.tensor(array.T))
    model = nn.parallel.DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), RATE)
    loss_of = nn.CrossEntropyLoss()
    x, labels = map(torch.tensor, batch(rank))
    last = []

    def step():
        optimizer.zero_grad()
        loss = loss_of(model(x), labels)
        loss.backward()
        optimizer.step()
        last[:] = [loss.detach()]

    serve(step, lambda: float(last[0]))


if __name__ == "__main__":
    main()
