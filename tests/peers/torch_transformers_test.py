#!/usr/bin/env python3
"""Small models of the package transformers, with random weights, on lazuli: through torch.compile(backend="lazuli") and as whole steps.

    torch_transformers_test.py FOLDER [NAME...]      FOLDER holds the package lazuli; names are those of models

Twelve models run through the backend, at two sizes of batches: outputs and gradients are eager's, no function is left to torch, no
graph breaks, and nothing is compiled again but once for the second size. These and others train in whole steps with eager's losses,
some of them with padded batches, whose masks the models' Python asks about.
"""

import argparse
import copy
import sys
import warnings

import torch

VOCABULARY, TOLERANCE = 64, 1e-4
WIDTHS = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
TEXT = {"vocab_size": VOCABULARY, "max_position_embeddings": 64, **WIDTHS}
SPECIAL = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
LLAMA = {**TEXT, **SPECIAL, "num_key_value_heads": 2, "head_dim": 8}
GPT2 = {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, **SPECIAL}
PAIR = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48, "vocab_size": VOCABULARY, "decoder_start_token_id": 2, **SPECIAL}
IMAGE = {**WIDTHS, "image_size": 16, "patch_size": 4}


# --- batches of n

def words(n, length=9):
    return torch.randint(3, VOCABULARY, (n, length))


def text(n):
    given = words(n)
    return {"input_ids": given, "labels": given}


def padded(n):
    mask = torch.ones(n, 9, dtype=torch.int64)
    mask[-1, 6:] = 0
    return {**text(n), "attention_mask": mask}


def pairs(n):
    return {"input_ids": words(n, 7), "labels": words(n, 5)}


def images(n):
    return {"pixel_values": torch.rand(n, 3, 16, 16), "labels": torch.randint(0, 2, (n,))}


def sounds(n):
    return {"input_features": torch.rand(n, 8, 32), "labels": words(n, 6)}


def captions(n):
    return {"input_ids": torch.cat([words(n, 8), torch.full((n, 1), 2)], 1), "pixel_values": torch.rand(n, 3, 16, 16), "return_loss": True}


def models():
    """By name: (class, configuration, batch of n, whether it runs through the backend here, too)."""
    import transformers as t
    return {
        "BERT": (t.BertForMaskedLM, t.BertConfig(**TEXT), text, True),
        "GPT-2": (t.GPT2LMHeadModel, t.GPT2Config(**GPT2), text, True),
        "Llama": (t.LlamaForCausalLM, t.LlamaConfig(**LLAMA), text, True),
        "Qwen3": (t.Qwen3ForCausalLM, t.Qwen3Config(**LLAMA), text, True),
        "Mixtral": (t.MixtralForCausalLM, t.MixtralConfig(**LLAMA, num_local_experts=4, num_experts_per_tok=2), text, True),
        "T5": (t.T5ForConditionalGeneration, t.T5Config(vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4,
                                                        decoder_start_token_id=0, pad_token_id=0, eos_token_id=1), pairs, True),
        "ViT": (t.ViTForImageClassification, t.ViTConfig(**IMAGE), images, True),
        "Whisper": (t.WhisperForConditionalGeneration, t.WhisperConfig(**PAIR, num_mel_bins=8, max_source_positions=16, max_target_positions=32),
                    sounds, True),
        "CLIP": (t.CLIPModel, t.CLIPConfig(text_config={**TEXT, **SPECIAL}, vision_config=IMAGE, projection_dim=16), captions, True),
        "Mamba": (t.MambaForCausalLM, t.MambaConfig(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, state_size=4, **SPECIAL), text, True),
        "ResNet": (t.ResNetForImageClassification, t.ResNetConfig(embedding_size=8, hidden_sizes=[16, 32], depths=[1, 1], layer_type="basic"),
                   images, True),
        "ConvNeXt": (t.ConvNextForImageClassification, t.ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 1], num_stages=2, patch_size=2), images, True),
        "DistilBERT, padded": (t.DistilBertForMaskedLM, t.DistilBertConfig(vocab_size=VOCABULARY, dim=32, n_layers=2, n_heads=4, hidden_dim=48,
                                                                           max_position_embeddings=64), padded, False),
        "OPT, padded": (t.OPTForCausalLM, t.OPTConfig(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=48,
                                                      word_embed_proj_dim=32, max_position_embeddings=64, **SPECIAL), padded, False),
        "Llama, padded": (t.LlamaForCausalLM, t.LlamaConfig(**LLAMA), padded, False),
        "Mistral": (t.MistralForCausalLM, t.MistralConfig(**LLAMA, sliding_window=4), text, False),
        "Gemma 2": (t.Gemma2ForCausalLM, t.Gemma2Config(**LLAMA, sliding_window=4), text, False),
        "BART": (t.BartForConditionalGeneration, t.BartConfig(**PAIR, max_position_embeddings=64), pairs, False),
        "Swin": (t.SwinForImageClassification, t.SwinConfig(image_size=16, patch_size=2, embed_dim=8, depths=[2, 2], num_heads=[2, 2], window_size=4),
                 images, False),
    }


class Loss(torch.nn.Module):
    """A model of a batch, whose output is the loss."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, batch):
        return self.model(**batch).loss


def worst(ours, theirs):
    """How far tensors are apart, relative to the largest element, or 1."""
    return max((a - b).abs().max().item() / max(1, b.abs().max().item()) for a, b in zip(ours, theirs, strict=True))


def tensors(output):
    """Those of an output that are of the model, in order."""
    found = torch.utils._pytree.tree_leaves({k: v for k, v in output.items() if k != "past_key_values"})
    return [t.detach() for t in found if isinstance(t, torch.Tensor) and t.is_floating_point()]


def compiled(first, batch):
    """How far outputs and gradients of the compiled model are from eager's, of two sizes of batches."""
    import lazuli.torch
    torch._dynamo.reset()
    lazuli.torch.reset()
    eager, ours = first, copy.deepcopy(first)
    function, found = torch.compile(ours, backend="lazuli"), []
    for n in (2, 3):
        given, results = batch(n), []
        for model, call in ((eager, eager), (ours, function)):
            model.zero_grad()
            torch.manual_seed(2)
            output = call(**given)
            output.loss.backward()
            results.append(tensors(output) + [p.grad for p in model.parameters() if p.grad is not None])
        found.append(worst(results[1], results[0]))
    report = lazuli.torch.report()
    assert not report.fallbacks and not report.graph_breaks and len(report.recompiles) <= 1, str(report)
    assert report.programs == 4, str(report)  # forward and backward, of two sizes
    return max(found)


def eager_step(model, optimizer, batch):
    optimizer.zero_grad()
    loss = model(batch)
    loss.backward()
    optimizer.step()
    return loss


def whole(first, batches):
    """How far losses of whole steps are from those of eager."""
    import lazuli.torch
    lazuli.torch.reset()
    losses = []
    for way in ("eager", "whole"):
        model, made = Loss(copy.deepcopy(first)), []
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        torch.manual_seed(2)
        step = lazuli.torch.train_step(model, optimizer, lambda loss: loss) if way == "whole" else None
        for given in batches:
            made.append(step(given) if way == "whole" else eager_step(model, optimizer, given))
        losses.append([loss.item() for loss in made])
    assert lazuli.torch.report().programs == 1, str(lazuli.torch.report())
    return max(abs(a - b) / max(1, abs(b)) for a, b in zip(losses[1], losses[0], strict=True))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    sys.path.insert(0, options.folder)
    warnings.simplefilter("ignore")
    import transformers
    transformers.logging.set_verbosity_error()
    import lazuli.torch  # noqa: F401
    failed = []
    for name, (kind, config, batch, through_backend) in models().items():
        if options.names and name not in options.names:
            continue
        torch.manual_seed(1)
        first = kind(config).train()
        first.loss_type = first.loss_type or "ForCausalLM"  # where the class's name says none, a log entry breaks dynamo's graph
        try:
            found = [whole(first, [batch(2) for _ in range(4)])]
            found += [compiled(first, batch)] if through_backend else []
            assert max(found) <= TOLERANCE, f"{found} is not within {TOLERANCE}"
        except Exception as error:  # every model is to be named
            failed.append(name)
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
            continue
        print(f"{name}: losses of whole steps within {found[0]:.0e}"
              f"{f', outputs and gradients of the compiled model within {found[1]:.0e}' if through_backend else ''}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
