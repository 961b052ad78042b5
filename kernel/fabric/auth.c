// SPDX-License-Identifier: GPL-2.0
/*
 * Authentication: both sides prove that they know the cluster secret before any queue pair exists
 * that could reach memory. cm.c carries the messages; Documentation/wire-protocol.rst (Connecting,
 * Authentication) describes them, and what they do not protect against.
 *
 * A HELLO takes no memory here: nonce b is derived from it and a key of this node. Only the nonces
 * of accepted CONNECTs are remembered, under lite_auth.lock.
 */
#include <crypto/algapi.h>
#include <crypto/hash.h>
#include <linux/random.h>
#include <linux/timekeeping.h>

#include "fabric.h"

/* Minimum number of seconds that a challenge is valid. */
#define LITE_EPOCH_SECONDS 16

static const char lite_secret_label[] = "LITE cluster secret 1:";

static u64 lite_epoch(void)
{
	return ktime_get_seconds() / LITE_EPOCH_SECONDS;
}

static int lite_hmac_alloc(struct crypto_shash **out, const u8 *key, size_t len)
{
	struct crypto_shash *tfm = crypto_alloc_shash("hmac(sha256)", 0, 0);
	int err;

	if (IS_ERR(tfm))
		return PTR_ERR(tfm);
	err = crypto_shash_setkey(tfm, key, len);
	if (err)
		crypto_free_shash(tfm);
	else
		*out = tfm;
	return err;
}

/*
 * Set the cluster secret of up to LITE_SECRET_MAX bytes, which the caller wipes; 0: insecure.
 * May sleep. Return: 0 or a negative errno; lite_auth_exit() undoes it in any case.
 */
int lite_auth_init(struct lite_auth *auth, const u8 *secret, size_t len)
{
	u8 key[sizeof(lite_secret_label) - 1 + 64];
	const size_t head = sizeof(lite_secret_label) - 1;
	int err;

	if (len > sizeof(key) - head)
		return -EINVAL;
	spin_lock_init(&auth->lock);
	auth->insecure = !len;

	/* The label makes a key even of an empty secret. */
	memcpy(key, lite_secret_label, head);
	memcpy(key + head, secret, len);
	err = lite_hmac_alloc(&auth->secret_tfm, key, head + len);
	if (!err) {
		get_random_bytes(key, 32);
		err = lite_hmac_alloc(&auth->cookie_tfm, key, 32);
	}
	memzero_explicit(key, sizeof(key));
	return err;
}

void lite_auth_exit(struct lite_auth *auth)
{
	crypto_free_shash(auth->secret_tfm);
	crypto_free_shash(auth->cookie_tfm);
}

/* HMAC over a label, the responder's address, and two pieces of data. */
static int lite_hmac(struct crypto_shash *tfm, const char *label,
		     const struct lite_wire_addr *responder, const void *a, size_t a_len,
		     const void *b, size_t b_len, u8 out[LITE_MAC_SIZE])
{
	SHASH_DESC_ON_STACK(desc, tfm);
	int err;

	desc->tfm = tfm;
	err = crypto_shash_init(desc) ?:
	      crypto_shash_update(desc, label, strlen(label) + 1) ?:
	      crypto_shash_update(desc, (u8 *)responder, sizeof(*responder)) ?:
	      crypto_shash_update(desc, a, a_len) ?:
	      crypto_shash_update(desc, b, b_len) ?:
	      crypto_shash_final(desc, out);
	shash_desc_zero(desc);
	return err;
}

static int lite_auth_cookie(struct lite_auth *auth, const struct lite_wire_addr *responder,
			    const struct lite_cm_hello *hello, u64 epoch,
			    u8 nonce[LITE_NONCE_SIZE])
{
	u8 mac[LITE_MAC_SIZE];
	int err;

	err = lite_hmac(auth->cookie_tfm, "cookie", responder, hello, sizeof(*hello),
			&epoch, sizeof(epoch), mac);
	memcpy(nonce, mac, LITE_NONCE_SIZE);
	return err;
}

/* The MAC of a challenge. Process context. Return: 0 or -errno. */
int lite_auth_challenge_mac(struct lite_auth *auth, const struct lite_wire_addr *responder,
			    const struct lite_cm_hello *hello,
			    const struct lite_cm_challenge *ch, u8 *mac)
{
	return lite_hmac(auth->secret_tfm, "challenge", responder, hello, sizeof(*hello),
			 ch, offsetof(struct lite_cm_challenge, mac), mac);
}

/* The initiator's proof: LITE_PROOF_SIZE bytes of @mac. Process context. Return: 0 or -errno. */
int lite_auth_proof(struct lite_auth *auth, const struct lite_wire_addr *responder,
		    const u8 *nonce, const struct lite_cm_connect *connect, u8 *mac)
{
	return lite_hmac(auth->secret_tfm, "connect", responder, connect,
			 offsetof(struct lite_cm_connect, proof), nonce, LITE_NONCE_SIZE, mac);
}

/* The MAC of an accept, with the initiator's @nonce. Process context. Return: 0 or -errno. */
int lite_auth_accept_mac(struct lite_auth *auth, const struct lite_wire_addr *responder,
			 const u8 *nonce, const struct lite_cm_accept *accept, u8 *mac)
{
	return lite_hmac(auth->secret_tfm, "accept", responder, nonce, LITE_NONCE_SIZE,
			 accept, offsetof(struct lite_cm_accept, mac), mac);
}

/* Is a received MAC right? Return: 0 or -EKEYREJECTED. */
int lite_auth_compare(const u8 *mac, const u8 *got, size_t size)
{
	return crypto_memneq(mac, got, size) ? -EKEYREJECTED : 0;
}

/* Answer @hello: add nonce and mac to the header in @out. Process context. Return: 0 or -errno. */
int lite_auth_challenge(struct lite_auth *auth, const struct lite_wire_addr *responder,
			const struct lite_cm_hello *hello, struct lite_cm_challenge *out)
{
	return lite_auth_cookie(auth, responder, hello, lite_epoch(), out->nonce) ?:
	       lite_auth_challenge_mac(auth, responder, hello, out, out->mac);
}

/* Use a nonce for one connection only, so that a recorded CONNECT cannot be replayed. */
static int lite_auth_use_nonce(struct lite_auth *auth, const u8 *nonce)
{
	u64 now = lite_epoch();
	int room = -1;
	int err = 0;
	int i;

	spin_lock(&auth->lock);
	for (i = 0; i < LITE_NONCES_SEEN; i++) {
		if (auth->seen[i].epoch + 2 <= now || !auth->seen[i].epoch)
			room = i;
		else if (!memcmp(auth->seen[i].nonce, nonce, LITE_NONCE_SIZE))
			err = -EKEYREJECTED;
	}
	if (!err && room < 0)
		err = -EBUSY;
	if (!err) {
		memcpy(auth->seen[room].nonce, nonce, LITE_NONCE_SIZE);
		/* At least 1: 0 marks an unused entry. */
		auth->seen[room].epoch = max_t(u64, now, 1);
	}
	spin_unlock(&auth->lock);
	return err;
}

/*
 * Does the initiator know the secret? Process context. Return: 0; -EKEYREJECTED: wrong proof, or
 * the challenge is too old or used; -EBUSY: the table of used nonces is full.
 */
int lite_auth_check_connect(struct lite_auth *auth, const struct lite_wire_addr *responder,
			    const struct lite_cm_connect *connect)
{
	struct lite_cm_hello hello = {
		.hdr = connect->hdr,
		.from = connect->from,
	};
	u64 epoch = lite_epoch();
	u8 nonce[LITE_NONCE_SIZE];
	u8 mac[LITE_MAC_SIZE];
	int back, err;

	hello.hdr.kind = LITE_CM_HELLO;
	memcpy(hello.nonce, connect->nonce, LITE_NONCE_SIZE);
	for (back = 0; back < 2 && back <= epoch; back++) {
		err = lite_auth_cookie(auth, responder, &hello, epoch - back, nonce) ?:
		      lite_auth_proof(auth, responder, nonce, connect, mac);
		if (err)
			return err;
		if (!lite_auth_compare(mac, connect->proof, LITE_PROOF_SIZE))
			return lite_auth_use_nonce(auth, connect->nonce);
	}
	return -EKEYREJECTED;
}
