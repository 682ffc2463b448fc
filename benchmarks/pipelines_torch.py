"""Data pipelines for PyTorch."""

from benchmarks import inputs
from benchmarks.registry import Registry

workload = Registry()


@workload
def shuffled_batches(torch):
    from torch.utils.data import DataLoader, TensorDataset

    data = TensorDataset(*map(torch.from_numpy, inputs.rows_and_labels()))
    loader = DataLoader(data, batch_size=128, shuffle=True)

    def step():
        batches = rows = 0
        for x, _ in loader:
            batches, rows = batches + 1, rows + x.shape[0]
        return [torch.tensor(batches), torch.tensor(rows)]

    return step
