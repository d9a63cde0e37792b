// SPDX-License-Identifier: Apache-2.0
// The table of architectures.
#include "convert/architectures.h"

#include "core/model/words.h"

namespace weighbridge::convert {
namespace {

using enum Arrange;

constexpr TensorRow kLlamaFamily[] = {
    {"model.embed_tokens", "token_embd"},
    {"model.norm", "output_norm"},
    {"lm_head", "output"},
    {"model.layers.N.input_layernorm", "blk.N.attn_norm"},
    {"model.layers.N.self_attn.q_proj", "blk.N.attn_q", query_heads},
    {"model.layers.N.self_attn.k_proj", "blk.N.attn_k", key_heads},
    {"model.layers.N.self_attn.v_proj", "blk.N.attn_v"},
    {"model.layers.N.self_attn.o_proj", "blk.N.attn_output"},
    {"model.layers.N.post_attention_layernorm", "blk.N.ffn_norm"},
    {"model.layers.N.mlp.gate_proj", "blk.N.ffn_gate"},
    {"model.layers.N.mlp.up_proj", "blk.N.ffn_up"},
    {"model.layers.N.mlp.down_proj", "blk.N.ffn_down"},
    {"model.layers.N.self_attn.q_norm", "blk.N.attn_q_norm"},
    {"model.layers.N.self_attn.k_norm", "blk.N.attn_k_norm"},
    {"model.layers.N.mlp.gate", "blk.N.ffn_gate_inp"},
    {"model.layers.N.mlp.experts.E.gate_proj", "blk.N.ffn_gate_exps", experts},
    {"model.layers.N.mlp.experts.E.up_proj", "blk.N.ffn_up_exps", experts},
    {"model.layers.N.mlp.experts.E.down_proj", "blk.N.ffn_down_exps", experts},
    {"model.layers.N.mlp.experts.gate_up_proj", "blk.N.ffn_gate_exps", halves, "blk.N.ffn_up_exps"},
    {"model.layers.N.mlp.experts.down_proj", "blk.N.ffn_down_exps"},
    {"model.layers.N.self_attn.rotary_emb.inv_freq", "", left_out},
};
constexpr TensorRow kMixtral[] = {
    {"model.layers.N.block_sparse_moe.gate", "blk.N.ffn_gate_inp"},
    {"model.layers.N.block_sparse_moe.experts.E.w1", "blk.N.ffn_gate_exps", experts},
    {"model.layers.N.block_sparse_moe.experts.E.w3", "blk.N.ffn_up_exps", experts},
    {"model.layers.N.block_sparse_moe.experts.E.w2", "blk.N.ffn_down_exps", experts},
};
constexpr TensorRow kQwen2Moe[] = {
    {"model.layers.N.mlp.shared_expert.gate_proj", "blk.N.ffn_gate_shexp"},
    {"model.layers.N.mlp.shared_expert.up_proj", "blk.N.ffn_up_shexp"},
    {"model.layers.N.mlp.shared_expert.down_proj", "blk.N.ffn_down_shexp"},
    {"model.layers.N.mlp.shared_expert_gate", "blk.N.ffn_gate_inp_shexp"},
};
constexpr TensorRow kGemma2[] = {
    {"model.layers.N.post_attention_layernorm", "blk.N.post_attention_norm"},
    {"model.layers.N.pre_feedforward_layernorm", "blk.N.ffn_norm"},
    {"model.layers.N.post_feedforward_layernorm", "blk.N.post_ffw_norm"},
};
constexpr TensorRow kPhi2[] = {
    {"model.layers.N.self_attn.dense", "blk.N.attn_output"},
    {"model.layers.N.mlp.fc1", "blk.N.ffn_up"},
    {"model.layers.N.mlp.fc2", "blk.N.ffn_down"},
    {"model.final_layernorm", "output_norm"},
};
constexpr TensorRow kPhi3Names[] = {
    {"model.layers.N.self_attn.qkv_proj", "blk.N.attn_qkv"},
    {"model.layers.N.mlp.gate_up_proj", "blk.N.ffn_up"},
};
constexpr TensorRow kOlmo2[] = {
    {"model.layers.N.post_attention_layernorm", "blk.N.post_attention_norm"},
    {"model.layers.N.post_feedforward_layernorm", "blk.N.post_ffw_norm"},
};
constexpr TensorRow kStarCoder2[] = {
    {"model.layers.N.mlp.c_fc", "blk.N.ffn_up"},
    {"model.layers.N.mlp.c_proj", "blk.N.ffn_down"},
};
constexpr TensorRow kGpt2[] = {
    {"wte", "token_embd"},
    {"wpe", "position_embd"},
    {"ln_f", "output_norm"},
    {"lm_head", "output"},
    {"h.N.ln_1", "blk.N.attn_norm"},
    {"h.N.ln_2", "blk.N.ffn_norm"},
    {"h.N.attn.c_attn", "blk.N.attn_qkv", transpose},
    {"h.N.attn.c_proj", "blk.N.attn_output", transpose},
    {"h.N.mlp.c_fc", "blk.N.ffn_up", transpose},
    {"h.N.mlp.c_proj", "blk.N.ffn_down", transpose},
    {"h.N.attn.bias", "", left_out},
    {"h.N.attn.masked_bias", "", left_out},
};
constexpr TensorRow kGptOss[] = {
    {"model.layers.N.post_attention_layernorm", "blk.N.post_attention_norm"},
    {"model.layers.N.self_attn.sinks", "blk.N.attn_sinks.weight"},
    {"model.layers.N.mlp.router", "blk.N.ffn_gate_inp"},
    {"model.layers.N.mlp.experts.gate_up_proj", "blk.N.ffn_gate_exps.weight", even_odd, "blk.N.ffn_up_exps.weight"},
    {"model.layers.N.mlp.experts.gate_up_proj_bias", "blk.N.ffn_gate_exps.bias", even_odd_bias,
     "blk.N.ffn_up_exps.bias"},
    {"model.layers.N.mlp.experts.down_proj", "blk.N.ffn_down_exps.weight", columns},
    {"model.layers.N.mlp.experts.down_proj_bias", "blk.N.ffn_down_exps.bias"},
};
constexpr TensorRow kDeepSeekNames[] = {
    {"model.layers.N.self_attn.q_proj", "blk.N.attn_q"},
    {"model.layers.N.self_attn.q_a_proj", "blk.N.attn_q_a"},
    {"model.layers.N.self_attn.q_a_layernorm", "blk.N.attn_q_a_norm"},
    {"model.layers.N.self_attn.q_b_proj", "blk.N.attn_q_b"},
    {"model.layers.N.self_attn.kv_a_proj_with_mqa", "blk.N.attn_kv_a_mqa"},
    {"model.layers.N.self_attn.kv_a_layernorm", "blk.N.attn_kv_a_norm"},
    {"model.layers.N.self_attn.kv_b_proj", "blk.N.attn_k_b", key_value, "blk.N.attn_v_b"},
    {"model.layers.N.mlp.gate.e_score_correction_bias", "blk.N.exp_probs_b.bias"},
    {"model.layers.N.mlp.shared_experts.gate_proj", "blk.N.ffn_gate_shexp"},
    {"model.layers.N.mlp.shared_experts.up_proj", "blk.N.ffn_up_shexp"},
    {"model.layers.N.mlp.shared_experts.down_proj", "blk.N.ffn_down_shexp"},
};

constexpr std::string_view kNoEmbedding = "no embedding needs it", kTied = "the embeddings are shared";
constexpr TensorRow kBert[] = {
    {"embeddings.word_embeddings", "token_embd"},
    {"embeddings.token_type_embeddings", "token_types"},
    {"embeddings.position_embeddings", "position_embd", positions},
    {"embeddings.LayerNorm", "token_embd_norm"},
    {"encoder.layer.N.attention.self.query", "blk.N.attn_q"},
    {"encoder.layer.N.attention.self.key", "blk.N.attn_k"},
    {"encoder.layer.N.attention.self.value", "blk.N.attn_v"},
    {"encoder.layer.N.attention.output.dense", "blk.N.attn_output"},
    {"encoder.layer.N.attention.output.LayerNorm", "blk.N.attn_output_norm"},
    {"encoder.layer.N.intermediate.dense", "blk.N.ffn_up"},
    {"encoder.layer.N.output.dense", "blk.N.ffn_down"},
    {"encoder.layer.N.output.LayerNorm", "blk.N.layer_output_norm"},
    {"embeddings.position_ids", "", left_out, kNoEmbedding},
    {"pooler.dense", "", left_out, kNoEmbedding},
    {"lm_head", "", other_part},
    {"lm_head.dense", "", other_part},
    {"lm_head.layer_norm", "", other_part},
    {"lm_head.decoder", "", other_part},
};
constexpr TensorRow kNomicBert[] = {
    {"embeddings.word_embeddings", "token_embd"},
    {"embeddings.token_type_embeddings", "token_types"},
    {"emb_ln", "token_embd_norm"},
    {"encoder.layers.N.attn.Wqkv", "blk.N.attn_qkv"},
    {"encoder.layers.N.attn.out_proj", "blk.N.attn_output"},
    {"encoder.layers.N.norm1", "blk.N.attn_output_norm"},
    {"encoder.layers.N.mlp.fc11", "blk.N.ffn_up"},
    {"encoder.layers.N.mlp.fc12", "blk.N.ffn_gate"},
    {"encoder.layers.N.mlp.fc2", "blk.N.ffn_down"},
    {"encoder.layers.N.norm2", "blk.N.layer_output_norm"},
};
constexpr TensorRow kNomicBertMoe[] = {
    {"encoder.layers.N.mlp.fc1", "blk.N.ffn_up"},
    {"encoder.layers.N.mlp.router.layer", "blk.N.ffn_gate_inp"},
    {"encoder.layers.N.mlp.experts.mlp.w1", "blk.N.ffn_up_exps", stacked},
    {"encoder.layers.N.mlp.experts.mlp.w2", "blk.N.ffn_down_exps", stacked_turned},
    {"encoder.layers.N.mlp.experts.bias", "", other_part},
};
constexpr TensorRow kGptNeoX[] = {
    {"embed_in", "token_embd"},
    {"embed_out", "output"},
    {"final_layer_norm", "output_norm"},
    {"layers.N.input_layernorm", "blk.N.attn_norm"},
    {"layers.N.post_attention_layernorm", "blk.N.ffn_norm"},
    {"layers.N.attention.query_key_value", "blk.N.attn_qkv", grouped_qkv},
    {"layers.N.attention.dense", "blk.N.attn_output"},
    {"layers.N.mlp.dense_h_to_4h", "blk.N.ffn_up"},
    {"layers.N.mlp.dense_4h_to_h", "blk.N.ffn_down"},
    {"layers.N.attention.bias", "", left_out},
    {"layers.N.attention.masked_bias", "", left_out},
    {"layers.N.attention.rotary_emb.inv_freq", "", left_out},
};
constexpr TensorRow kFalcon[] = {
    {"word_embeddings", "token_embd"},
    {"lm_head", "output"},
    {"ln_f", "output_norm"},
    {"h.N.input_layernorm", "blk.N.attn_norm"},
    {"h.N.ln_mlp", "blk.N.attn_norm"},
    {"h.N.ln_attn", "blk.N.attn_norm_2"},
    {"h.N.self_attention.query_key_value", "blk.N.attn_qkv", grouped_qkv},
    {"h.N.self_attention.dense", "blk.N.attn_output"},
    {"h.N.mlp.dense_h_to_4h", "blk.N.ffn_up"},
    {"h.N.mlp.dense_4h_to_h", "blk.N.ffn_down"},
    {"h.N.self_attention.rotary_emb.inv_freq", "", left_out},
};
constexpr TensorRow kModernBert[] = {
    {"embeddings.tok_embeddings", "token_embd"},
    {"embeddings.norm", "token_embd_norm"},
    {"final_norm", "output_norm"},
    {"layers.N.attn_norm", "blk.N.attn_norm"},
    {"layers.N.attn.Wqkv", "blk.N.attn_qkv"},
    {"layers.N.attn.Wo", "blk.N.attn_output"},
    {"layers.N.mlp_norm", "blk.N.ffn_norm"},
    {"layers.N.mlp.Wi", "blk.N.ffn_up"},
    {"layers.N.mlp.Wo", "blk.N.ffn_down"},
    {"head.dense", "", other_part},
    {"head.norm", "", other_part},
    {"decoder", "", other_part},
};
constexpr TensorRow kT5[] = {
    {"shared", "token_embd"},
    {"encoder.embed_tokens", "", left_out, kTied},
    {"decoder.embed_tokens", "", left_out, kTied},
    {"lm_head", "output"},
    {"encoder.final_layer_norm", "enc.output_norm"},
    {"encoder.block.N.layer.0.layer_norm", "enc.blk.N.attn_norm"},
    {"encoder.block.N.layer.0.SelfAttention.q", "enc.blk.N.attn_q"},
    {"encoder.block.N.layer.0.SelfAttention.k", "enc.blk.N.attn_k"},
    {"encoder.block.N.layer.0.SelfAttention.v", "enc.blk.N.attn_v"},
    {"encoder.block.N.layer.0.SelfAttention.o", "enc.blk.N.attn_o"},
    {"encoder.block.N.layer.0.SelfAttention.relative_attention_bias", "enc.blk.N.attn_rel_b"},
    {"encoder.block.N.layer.1.layer_norm", "enc.blk.N.ffn_norm"},
    {"encoder.block.N.layer.1.DenseReluDense.wi", "enc.blk.N.ffn_up"},
    {"encoder.block.N.layer.1.DenseReluDense.wi_0", "enc.blk.N.ffn_gate"},
    {"encoder.block.N.layer.1.DenseReluDense.wi_1", "enc.blk.N.ffn_up"},
    {"encoder.block.N.layer.1.DenseReluDense.wo", "enc.blk.N.ffn_down"},
    {"decoder.final_layer_norm", "dec.output_norm"},
    {"decoder.block.N.layer.0.layer_norm", "dec.blk.N.attn_norm"},
    {"decoder.block.N.layer.0.SelfAttention.q", "dec.blk.N.attn_q"},
    {"decoder.block.N.layer.0.SelfAttention.k", "dec.blk.N.attn_k"},
    {"decoder.block.N.layer.0.SelfAttention.v", "dec.blk.N.attn_v"},
    {"decoder.block.N.layer.0.SelfAttention.o", "dec.blk.N.attn_o"},
    {"decoder.block.N.layer.0.SelfAttention.relative_attention_bias", "dec.blk.N.attn_rel_b"},
    {"decoder.block.N.layer.1.layer_norm", "dec.blk.N.cross_attn_norm"},
    {"decoder.block.N.layer.1.EncDecAttention.q", "dec.blk.N.cross_attn_q"},
    {"decoder.block.N.layer.1.EncDecAttention.k", "dec.blk.N.cross_attn_k"},
    {"decoder.block.N.layer.1.EncDecAttention.v", "dec.blk.N.cross_attn_v"},
    {"decoder.block.N.layer.1.EncDecAttention.o", "dec.blk.N.cross_attn_o"},
    {"decoder.block.N.layer.2.layer_norm", "dec.blk.N.ffn_norm"},
    {"decoder.block.N.layer.2.DenseReluDense.wi", "dec.blk.N.ffn_up"},
    {"decoder.block.N.layer.2.DenseReluDense.wi_0", "dec.blk.N.ffn_gate"},
    {"decoder.block.N.layer.2.DenseReluDense.wi_1", "dec.blk.N.ffn_up"},
    {"decoder.block.N.layer.2.DenseReluDense.wo", "dec.blk.N.ffn_down"},
};

constexpr unsigned kBertFlags = kEncoder | kNoRotation | kNoKeyValueHeads | kNoHeadSize | kGelu;

constexpr Architecture kRows[] = {
    {"LlamaForCausalLM",
     "llama",
     {},
     kLlamaFamily,
     kPermutes | kStatesVocabulary | kStatesRotated | kStatesBiases,
     "max_position_embeddings=2048 rms_norm_eps=1e-6",
     {},
     "model_type=llama hidden_act=silu|swish partial_rotary_factor=1.0|1"},
    {"MistralForCausalLM",
     "llama",
     {},
     kLlamaFamily,
     kPermutes | kStatesVocabulary | kStatesRotated,
     "num_key_value_heads=8 max_position_embeddings=131072 rms_norm_eps=1e-6",
     {},
     "model_type=mistral hidden_act=silu|swish"},
    {"MixtralForCausalLM",
     "llama",
     kMixtral,
     kLlamaFamily,
     kPermutes | kStatesVocabulary | kStatesRotated | kExperts,
     "num_key_value_heads=8 max_position_embeddings=131072 rms_norm_eps=1e-5 rope_theta=1e6 num_local_experts=8 "
     "num_experts_per_tok=2",
     {},
     "model_type=mixtral hidden_act=silu|swish"},
    {"Qwen2ForCausalLM",
     "qwen2",
     {},
     kLlamaFamily,
     kNoHeadSize,
     "num_key_value_heads=32 max_position_embeddings=32768 rms_norm_eps=1e-6",
     {},
     "model_type=qwen2 hidden_act=silu|swish use_sliding_window=false"},
    {"Qwen2MoeForCausalLM", "qwen2moe", kQwen2Moe, kLlamaFamily, kExperts | kNoHeadSize,
     "num_key_value_heads=16 max_position_embeddings=32768 rms_norm_eps=1e-6 num_experts=60 num_experts_per_tok=4 "
     "moe_intermediate_size=1408 shared_expert_intermediate_size=5632",
     "expert_feed_forward_length=moe_intermediate_size:u "
     "expert_shared_feed_forward_length=shared_expert_intermediate_size:u",
     "model_type=qwen2_moe hidden_act=silu|swish use_sliding_window=false norm_topk_prob=false decoder_sparse_step=1 "
     "mlp_only_layers=[] "
     "qkv_bias=true"},
    {"Qwen3ForCausalLM",
     "qwen3",
     {},
     kLlamaFamily,
     0,
     "num_key_value_heads=32 head_dim=128 max_position_embeddings=32768 rms_norm_eps=1e-6",
     {},
     "model_type=qwen3 hidden_act=silu|swish use_sliding_window=false attention_bias=false"},
    {"Qwen3MoeForCausalLM",
     "qwen3moe",
     {},
     kLlamaFamily,
     kExperts,
     "num_key_value_heads=4 max_position_embeddings=32768 rms_norm_eps=1e-6 num_experts=128 num_experts_per_tok=8 "
     "moe_intermediate_size=768 norm_topk_prob=false",
     "expert_feed_forward_length=moe_intermediate_size:u",
     "model_type=qwen3_moe hidden_act=silu|swish use_sliding_window=false norm_topk_prob=true decoder_sparse_step=1 "
     "mlp_only_layers=[] "
     "attention_bias=false"},
    {"GemmaForCausalLM",
     "gemma",
     {},
     kLlamaFamily,
     kNormsPlusOne | kNoRopeBase | kDropsOutput | kGelu,
     "num_key_value_heads=16 head_dim=256 max_position_embeddings=8192 rms_norm_eps=1e-6",
     {},
     "model_type=gemma hidden_act=gelu_pytorch_tanh|gelu hidden_activation=gelu_pytorch_tanh attention_bias=false "
     "rope_theta=10000|10000.0 use_bidirectional_attention=null"},
    {"Gemma2ForCausalLM", "gemma2", kGemma2, kLlamaFamily, kNormsPlusOne | kNoRopeBase | kDropsOutput | kGelu,
     "num_key_value_heads=4 head_dim=256 max_position_embeddings=8192 rms_norm_eps=1e-6 sliding_window=4096 "
     "attn_logit_softcapping=50 final_logit_softcapping=30 query_pre_attn_scalar=256",
     "attn_logit_softcapping=attn_logit_softcapping:f final_logit_softcapping=final_logit_softcapping:f "
     "attention.sliding_window=sliding_window:u",
     "model_type=gemma2 hidden_act=gelu_pytorch_tanh|gelu hidden_activation=gelu_pytorch_tanh attention_bias=false "
     "rope_theta=10000|10000.0 use_bidirectional_attention=null"},
    {"Gemma3ForCausalLM Gemma3ForConditionalGeneration", "gemma3", kGemma2, kLlamaFamily,
     kNormsPlusOne | kDropsOutput | kGelu | kTwoRotations,
     "num_attention_heads=8 num_key_value_heads=4 head_dim=256 max_position_embeddings=131072 rms_norm_eps=1e-6 "
     "sliding_window=4096 rope_theta=1e6 rope_local_base_freq=1e4 query_pre_attn_scalar=256",
     "attention.sliding_window=sliding_window:u final_logit_softcapping=final_logit_softcapping:f?",
     "model_type=gemma3_text|gemma3 hidden_activation=gelu_pytorch_tanh attention_bias=false "
     "attn_logit_softcapping=null "
     "use_bidirectional_attention=false sliding_window_pattern=6 _sliding_window_pattern=6"},
    {"PhiForCausalLM",
     "phi2",
     kPhi2,
     kLlamaFamily,
     kStatesRotated | kNoRopeBase | kNoHeadSize | kGelu,
     "max_position_embeddings=2048 layer_norm_eps=1e-5 partial_rotary_factor=0.5",
     {},
     "model_type=phi hidden_act=gelu_new qk_layernorm=false rope_theta=10000|10000.0"},
    {"Phi3ForCausalLM",
     "phi3",
     kPhi3Names,
     kLlamaFamily,
     kStatesRotated | kPhi3 | kNoHeadSize,
     "max_position_embeddings=4096 original_max_position_embeddings=4096 rms_norm_eps=1e-5 partial_rotary_factor=1.0",
     {},
     "model_type=phi3 hidden_act=silu|swish attention_bias=false"},
    {"SmolLM3ForCausalLM",
     "smollm3",
     {},
     kLlamaFamily,
     kPermutes | kStatesVocabulary | kStatesRotated | kNoHeadSize,
     "num_key_value_heads=4 max_position_embeddings=32768 rms_norm_eps=1e-6 rope_theta=2e6",
     {},
     "model_type=smollm3 hidden_act=silu|swish use_sliding_window=false no_rope_layer_interval=4 attention_bias=false "
     "mlp_bias=false"},
    {"GraniteForCausalLM",
     "granite",
     {},
     kLlamaFamily,
     kPermutes | kStatesVocabulary | kStatesRotated | kStatesBiases | kNoHeadSize,
     "max_position_embeddings=2048 rms_norm_eps=1e-6",
     "attention.scale=attention_multiplier:f? embedding_scale=embedding_multiplier:f? "
     "residual_scale=residual_multiplier:f? logit_scale=logits_scaling:f?",
     "model_type=granite hidden_act=silu|swish head_dim=null"},
    {"Olmo2ForCausalLM",
     "olmo2",
     kOlmo2,
     kLlamaFamily,
     kNoHeadSize,
     "max_position_embeddings=2048 rms_norm_eps=1e-5",
     {},
     "model_type=olmo2 hidden_act=silu|swish attention_bias=false"},
    {"OlmoeForCausalLM",
     "olmoe",
     {},
     kLlamaFamily,
     kExperts | kNoHeadSize,
     "max_position_embeddings=4096 rms_norm_eps=1e-5 num_experts=64 num_experts_per_tok=8",
     {},
     "model_type=olmoe hidden_act=silu|swish attention_bias=false norm_topk_prob=false clip_qkv=null"},
    {"StableLmForCausalLM",
     "stablelm",
     {},
     kLlamaFamily,
     kStatesRotated | kNoRopeBase | kNoHeadSize,
     "num_key_value_heads=32 max_position_embeddings=4096 layer_norm_eps=1e-5 partial_rotary_factor=0.25 "
     "use_parallel_residual=false",
     "use_parallel_residual=use_parallel_residual:b",
     "model_type=stablelm hidden_act=silu|swish qk_layernorm=false rope_theta=10000|10000.0"},
    {"Starcoder2ForCausalLM",
     "starcoder2",
     kStarCoder2,
     kLlamaFamily,
     kNoHeadSize | kGelu,
     "num_key_value_heads=2 max_position_embeddings=4096 norm_epsilon=1e-5",
     {},
     "model_type=starcoder2 hidden_act=gelu_pytorch_tanh sliding_window=null use_bias=true"},
    {"GPT2LMHeadModel",
     "gpt2",
     kGpt2,
     {},
     kNoRopeBase | kNoKeyValueHeads | kNoHeadSize | kGelu,
     "n_layer=12 n_embd=768 n_head=12 n_positions=1024 n_inner layer_norm_epsilon=1e-5",
     {},
     "model_type=gpt2 activation_function=gelu_new|gelu scale_attn_weights=true scale_attn_by_inverse_layer_idx=false "
     "add_cross_attention=false",
     "transformer."},
    {"CohereForCausalLM",
     "command-r",
     {},
     kLlamaFamily,
     kNoHeadSize | kDropsOutput,
     "max_position_embeddings=8192 layer_norm_eps=1e-5 rope_theta=5e5 logit_scale=0.0625",
     "logit_scale=logit_scale:f",
     "model_type=cohere hidden_act=silu|swish use_qk_norm=false attention_bias=false"},
    {"Cohere2ForCausalLM",
     "cohere2",
     {},
     kLlamaFamily,
     kStatesVocabulary | kStatesRotated | kDropsOutput,
     "max_position_embeddings=8192 layer_norm_eps=1e-5 logit_scale=0.0625 sliding_window=4096",
     "logit_scale=logit_scale:f attention.sliding_window=sliding_window:u",
     "model_type=cohere2 hidden_act=silu|swish use_qk_norm=false attention_bias=false rotary_pct=1.0|1 "
     "sliding_window_pattern=4"},
    {"GPTNeoXForCausalLM",
     "gptneox",
     kGptNeoX,
     {},
     kStatesRotated | kNoRopeBase | kNoKeyValueHeads | kNoHeadSize | kGelu | kExperimental,
     "max_position_embeddings=2048 layer_norm_eps=1e-5 rotary_pct=0.25 use_parallel_residual=true",
     "use_parallel_residual=use_parallel_residual:b",
     "model_type=gpt_neox hidden_act=gelu|gelu_new|gelu_fast attention_bias=true tie_word_embeddings=false "
     "rope_theta=10000|10000.0 "
     "rotary_emb_base=10000|10000.0",
     "gpt_neox."},
    {"FalconForCausalLM RWForCausalLM",
     "falcon",
     kFalcon,
     {},
     kNoRopeBase | kNoHeadSize | kGelu | kExperimental,
     "max_position_embeddings=2048 ffn_hidden_size layer_norm_epsilon=1e-5",
     {},
     "model_type=falcon|RefinedWeb|RefinedWebModel activation=gelu alibi=false bias=false parallel_attn=true "
     "rope_theta=10000|10000.0",
     "transformer."},
    {"GptOssForCausalLM", "gpt-oss", kGptOss, kLlamaFamily, kExperts | kGelu,
     "num_key_value_heads=8 head_dim=64 max_position_embeddings=131072 rms_norm_eps=1e-5 rope_theta=1.5e5 "
     "num_local_experts=128 num_experts_per_tok=4 sliding_window=128",
     "attention.sliding_window=sliding_window:u expert_feed_forward_length=intermediate_size:u",
     "model_type=gpt_oss hidden_act=silu|swish swiglu_limit=7.0|7 swiglu_alpha=1.702 attention_bias=true"},
    {"DeepseekV2ForCausalLM", "deepseek2", kDeepSeekNames, kLlamaFamily, kExperts | kDeepSeek | kStatesVocabulary,
     "max_position_embeddings=2048 rms_norm_eps=1e-6 n_routed_experts=64 num_experts_per_tok=2 "
     "routed_scaling_factor=1.0",
     "leading_dense_block_count=first_k_dense_replace:u expert_feed_forward_length=moe_intermediate_size:u "
     "expert_shared_count=n_shared_experts:u expert_weights_scale=routed_scaling_factor:f",
     "model_type=deepseek_v2 hidden_act=silu|swish attention_bias=false norm_topk_prob=false scoring_func=softmax "
     "topk_method=greedy"},
    {"DeepseekV3ForCausalLM", "deepseek2", kDeepSeekNames, kLlamaFamily, kExperts | kDeepSeek | kStatesVocabulary,
     "num_key_value_heads=128 max_position_embeddings=4096 rms_norm_eps=1e-6 n_routed_experts=256 n_group=8 "
     "topk_group=4 "
     "num_experts_per_tok=8 routed_scaling_factor=2.5 norm_topk_prob=true kv_lora_rank=512 first_k_dense_replace=3 "
     "scoring_func=sigmoid",
     "expert_group_count=n_group:u? expert_group_used_count=topk_group:u? "
     "leading_dense_block_count=first_k_dense_replace:u expert_feed_forward_length=moe_intermediate_size:u "
     "expert_shared_count=n_shared_experts:u expert_weights_scale=routed_scaling_factor:f "
     "expert_weights_norm=norm_topk_prob:b",
     "model_type=deepseek_v3|kimi_k2 hidden_act=silu|swish attention_bias=false scoring_func=sigmoid "
     "rope_interleave=true topk_method=noaux_tc"},
    {"RobertaModel RobertaForMaskedLM CamembertModel CamembertForMaskedLM XLMRobertaModel XLMRobertaForMaskedLM",
     "bert",
     kBert,
     {},
     kBertFlags,
     "max_position_embeddings=512 layer_norm_eps=1e-12 type_vocab_size=2 pad_token_id=1",
     {},
     "hidden_act=gelu position_embedding_type=absolute is_decoder=false add_cross_attention=false "
     "lora_adaptations=null",
     "roberta."},
    {"NomicBertModel",
     "nomic-bert-moe",
     kNomicBertMoe,
     kNomicBert,
     kEncoder | kNoKeyValueHeads | kNoHeadSize | kExperts | kGelu,
     "layer_norm_epsilon=1e-12 type_vocab_size=2 rotary_emb_base=10000",
     "moe_every_n_layers=moe_every_n_layers:u",
     "activation_function=gelu causal=false prenorm=false qkv_proj_bias=true mlp_fc1_bias=true mlp_fc2_bias=true "
     "rotary_emb_fraction=1.0|1 rotary_emb_interleaved=false rotary_emb_scale_base=null use_rms_norm=false "
     "parallel_block=false scale_attn_weights=true n_positions=2048 max_trained_positions=2048",
     {},
     "moe_every_n_layers"},
    {"NomicBertModel",
     "nomic-bert",
     kNomicBert,
     {},
     kEncoder | kNoKeyValueHeads | kNoHeadSize,
     "max_trained_positions=2048 layer_norm_epsilon=1e-12 type_vocab_size=2 rotary_emb_base=10000",
     {},
     "activation_function=swiglu n_positions=8192 causal=false prenorm=false qkv_proj_bias=false mlp_fc1_bias=false "
     "mlp_fc2_bias=false "
     "rotary_emb_fraction=1.0|1 rotary_emb_interleaved=false rotary_emb_scale_base=null moe_every_n_layers=null "
     "num_experts=null use_rms_norm=false parallel_block=false scale_attn_weights=true"},
    {"ModernBertModel ModernBertForMaskedLM",
     "modern-bert",
     kModernBert,
     {},
     kEncoder | kTwoRotations | kNoKeyValueHeads | kNoHeadSize | kStatesVocabulary | kGelu,
     "max_position_embeddings=8192 norm_eps=1e-5 global_rope_theta=160000 local_rope_theta=10000 local_attention=128 "
     "global_attn_every_n_layers=3 type_vocab_size=1 hidden_activation=gelu",
     "attention.sliding_window=local_attention:u attention.sliding_window_pattern=global_attn_every_n_layers:u "
     "attention.layer_norm_rms_epsilon=norm_eps:f "
     "hidden_activation=hidden_activation:s",
     "hidden_activation=gelu attention_bias=false mlp_bias=false norm_bias=false",
     "model."},
    {"T5ForConditionalGeneration T5WithLMHeadModel MT5ForConditionalGeneration UMT5ForConditionalGeneration",
     "t5",
     kT5,
     {},
     kNoRotation | kNoKeyValueHeads | kGelu | kExperimental,
     "n_positions=512 d_model=512 d_kv=64 d_ff=2048 num_layers=6 num_heads=8 layer_norm_epsilon=1e-6 "
     "relative_attention_num_buckets=32 feed_forward_proj=relu",
     "attention.layer_norm_rms_epsilon=layer_norm_epsilon:f "
     "attention.relative_buckets_count=relative_attention_num_buckets:u "
     "decoder_start_token_id=decoder_start_token_id:u",
     "feed_forward_proj=relu|gated-gelu relative_attention_max_distance=128"},
};

}  // namespace

std::span<const Architecture> architectures() noexcept { return kRows; }

const Architecture* find_architecture(std::string_view class_name,
                                      const std::function<bool(std::string_view when)>& holds) {
  for (const Architecture& row : kRows)
    if (core::has_word(row.classes, class_name) && (row.when.empty() || holds(row.when))) return &row;
  return nullptr;
}

}  // namespace weighbridge::convert
