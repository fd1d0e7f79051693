"""One small GPT that never mentions a rank: what all strategies train.

Shape suffixes: B batch, S sequence, D model, H heads, K head dim, F ffn, V vocabulary. Attention is
written out, so that every FLOP is counted and every saved activation is visible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Config:
    """Sizes of a GPT. `tied`: the head uses the token embedding's weight. ValueError if heads do
    not divide.
    """

    vocab: int = 64
    seq: int = 16
    layers: int = 2
    dim: int = 32
    heads: int = 4
    tied: bool = False

    def __post_init__(self):
        if self.dim % self.heads:
            raise ValueError(f"heads={self.heads}: must divide dim={self.dim}")

    @property
    def parameters(self) -> int:
        """Number of parameters of GPT(self): 12 d^2 + 13 d per layer, embeddings, last norm,
        head.
        """
        layer = 12 * self.dim**2 + 13 * self.dim
        head = 0 if self.tied else self.vocab * self.dim
        return self.layers * layer + (self.vocab + self.seq) * self.dim + 2 * self.dim + head


class Attention(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.heads, dim = config.heads, config.dim
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        future = torch.full((config.seq, config.seq), -math.inf).triu(1)
        self.register_buffer("future_SS", future, persistent=False)

    def forward(self, x_BSD: Tensor) -> Tensor:
        B, S, D = x_BSD.shape
        qkv_BSD = self.qkv(x_BSD).chunk(3, dim=-1)
        q_BHSK, k_BHSK, v_BHSK = (
            t.view(B, S, self.heads, D // self.heads).transpose(1, 2) for t in qkv_BSD)
        scores_BHSS = q_BHSK @ k_BHSK.transpose(-1, -2) / math.sqrt(D // self.heads)
        # A mask that is added saves nothing for the backward pass; masked_fill would save itself.
        weights_BHSS = (scores_BHSS + self.future_SS[:S, :S]).softmax(dim=-1)
        y_BSD = (weights_BHSS @ v_BHSK).transpose(1, 2).reshape(B, S, D)
        return self.out(y_BSD)


class MLP(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.up, self.down = nn.Linear(config.dim, 4 * config.dim), nn.Linear(4 * config.dim,
                                                                              config.dim)

    def forward(self, x_BSD: Tensor) -> Tensor:
        h_BSF = nn.functional.gelu(self.up(x_BSD))
        return self.down(h_BSF)


class Block(nn.Module):
    """One transformer layer, layer norms first."""

    def __init__(self, config: Config):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(config.dim), Attention(config)
        self.norm2, self.mlp = nn.LayerNorm(config.dim), MLP(config)

    def forward(self, x_BSD: Tensor) -> Tensor:
        x_BSD = x_BSD + self.attention(self.norm1(x_BSD))
        return x_BSD + self.mlp(self.norm2(x_BSD))


class Embedding(nn.Module):
    """Token and position vectors."""

    def __init__(self, config: Config):
        super().__init__()
        self.token = nn.Embedding(config.vocab, config.dim)
        nn.init.normal_(self.token.weight, std=0.02)
        self.position = nn.Parameter(torch.randn(config.seq, config.dim) * 0.02)

    def forward(self, tokens_BS: Tensor) -> Tensor:
        return self.token(tokens_BS) + self.position[:tokens_BS.shape[1]]


class Head(nn.Module):
    """Last norm and logits over the vocabulary."""

    def __init__(self, config: Config):
        super().__init__()
        self.norm = nn.LayerNorm(config.dim)
        self.logits = nn.Linear(config.dim, config.vocab, bias=False)

    def forward(self, x_BSD: Tensor) -> Tensor:
        return self.logits(self.norm(x_BSD))


class GPT(nn.Module):
    """tokens [B, S] -> logits [B, S, V]. `units` are its layers in order: what is gathered or
    staged.
    """

    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.embedding, self.head = Embedding(config), Head(config)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        if config.tied:
            self.head.logits.weight = self.embedding.token.weight

    @property
    def units(self) -> list[nn.Module]:
        return [self.embedding, *self.blocks, self.head]

    def forward(self, tokens_BS: Tensor) -> Tensor:
        x = tokens_BS
        for unit in self.units:
            x = unit(x)
        return x


class Toy(nn.Module):
    """The notes' model of 12 parameters: x [B, 2] -> y [B, 2] through two layers of six weights
    each.
    """

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(2, 3, bias=False), nn.Linear(3, 2, bias=False)

    @property
    def units(self) -> list[nn.Module]:
        return [self.first, self.second]

    def forward(self, x_BD: Tensor) -> Tensor:
        return self.second(torch.tanh(self.first(x_BD)))


def build(config: Config | None = None, seed: int = 0) -> nn.Module:
    """The same model on every rank that passes the same seed: a GPT, or the 12-parameter toy."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Toy() if config is None else GPT(config)


def next_token_loss(model: nn.Module, tokens_BS: Tensor) -> Tensor:
    """Mean cross-entropy of predicting each token from those before it; tokens [B, S+1]."""
    logits_BSV = model(tokens_BS[:, :-1])
    return nn.functional.cross_entropy(logits_BSV.flatten(0, 1), tokens_BS[:, 1:].flatten())
