"""The parity Transformer of Barak et al. (2022, D.1.3): one attention block read at [CLS], then one MLP block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from paritylab.errors import require, whole
from paritylab.later import jax, jnp
from paritylab.setups.inits import Init


@dataclass(frozen=True)
class Transformer:
    """f(x) = u . mlp(attention(embedding(x))), without layer norm or dropout.

    Only the [CLS] position is read and tokens take 2n + 1 values (plus or minus at each position, and [CLS]), so the
    query is one vector and keys and values are tables of 2n + 1 rows, computed once for the whole batch.
    """

    d_emb: int = 1024
    d_attn: int = 8
    heads: int = 128
    d_mlp: int | None = None

    def __post_init__(self) -> None:
        for name in ("d_emb", "d_attn", "heads", "d_mlp"):
            given = 4 * self.d_emb if name == "d_mlp" and self.d_mlp is None else getattr(self, name)
            object.__setattr__(self, name, whole(name, given))
            require(getattr(self, name) >= 1, f"{name} must be at least 1, not {getattr(self, name)}")

    def init(self, key: Any, n: int, init: Init) -> Any:
        require(not init.mirrored, "a Transformer has no mirrored pairs")
        require(not init.raised, "a raised start is for an MLP, not for a Transformer")
        require(not init.logits, "a law of logits is for an MLP or a Graph, not for a Transformer")
        keys = iter(jax.random.split(key, 9))
        d, inner, hidden = self.d_emb, self.heads * self.d_attn, self.d_mlp or 0

        def matrix(fan_in: int, fan_out: int) -> Any:
            return init.dense(next(keys), fan_in, fan_out)["w"]

        return {
            "token": jax.random.normal(next(keys), (3, d)),  # E_+, E_-, E_CLS, as an embedding table starts
            "position": jax.random.normal(next(keys), (n, d)),
            "query": matrix(d, inner),
            "key": matrix(d, inner),
            "value": matrix(d, inner),
            "out": matrix(inner, d),
            "mlp": [init.dense(next(keys), d, hidden), init.dense(next(keys), hidden, d)],
            "head": matrix(d, 1),
        }

    def apply(self, params: Any, x: Any) -> Any:
        plus, minus = (params["position"] + params["token"][i] for i in (0, 1))
        cls = params["token"][2]
        tokens = jnp.concatenate([plus, minus, cls[None]])
        query = (cls @ params["query"]).reshape(self.heads, self.d_attn)
        keys, values = ((tokens @ params[name]).reshape(-1, self.heads, self.d_attn) for name in ("key", "value"))
        logits = jnp.einsum("thd,hd->th", keys, query) / jnp.sqrt(self.d_attn)
        z = cls + self._attend(logits, values, x) @ params["out"]
        up, down = params["mlp"]
        z = z + jax.nn.gelu(z @ up["w"] + up["b"], approximate=False) @ down["w"] + down["b"]
        return (z @ params["head"])[..., 0]

    def _attend(self, logits: Any, values: Any, x: Any) -> Any:
        """Softmax over the n + 1 tokens of each input, from the tables; (batch, heads * d_attn)."""
        n = x.shape[-1]
        plus, minus, cls = logits[:n], logits[n : 2 * n], logits[2 * n]
        sign = x[..., None]
        present = jnp.where(sign > 0, plus, minus)  # (batch, n, heads)
        largest = jax.lax.stop_gradient(jnp.maximum(present.max(1), cls))
        weight, cls = jnp.exp(present - largest[:, None]), jnp.exp(cls - largest)
        mean, half = (values[:n] + values[n : 2 * n]) / 2, (values[:n] - values[n : 2 * n]) / 2
        # A token's value is mean + x half, so the weighted sum over tokens is two products with tables.
        total = jnp.einsum("bnh,nhd->bhd", weight, mean) + jnp.einsum("bnh,nhd->bhd", weight * sign, half)
        total = total + cls[..., None] * values[2 * n]
        norm = weight.sum(1) + cls
        return (total / norm[..., None]).reshape(x.shape[0], -1)
