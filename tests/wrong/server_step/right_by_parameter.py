# verdict: passed
# points: 6
import torch


def server_step(model, optimizer, group, weights):
    total = torch.zeros(sum(p.numel() for p in model.parameters()), dtype=torch.float64)
    for worker in reversed(range(1, group.size)):
        part = torch.empty_like(total)
        group.recv(part, worker)
        total.add_(part, alpha=weights[worker - 1])
    total /= sum(weights)
    if optimizer is not None:
        sizes = [p.numel() for p in model.parameters()]
        for p, part in zip(model.parameters(), total.split(sizes)):
            p.grad = part.view_as(p).clone()
        optimizer.step()
        optimizer.zero_grad()
        total = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    for worker in range(1, group.size):
        group.send(total, worker)
