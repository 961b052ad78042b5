// SPDX-License-Identifier: GPL-2.0
/*
 * Who may connect: mutual proof of knowing the cluster secret, before any
 * queue pair exists that could reach memory.
 *
 *   initiator                                   responder
 *     HELLO    ident, nonce a          ->
 *              <- (reject) CHALLENGE   nonce b, HMAC(secret, hello, b)
 *     CONNECT  ident, a, HMAC(secret, connect, b) ->
 *              <- ACCEPT  key, addresses, HMAC(secret, a, accept)
 *
 * Nonce b is derived from the hello and a key of the responder's own, as SYN
 * cookies are (RFC 4987): a hello makes the responder remember nothing. It is
 * good for one to two epochs, and for one connection.
 *
 * Every HMAC is over the responder's address, too, as the initiator dialled it:
 * so what one node was sent is of no use to pass on to a third one.
 *
 * What this does not do: encrypt or authenticate the traffic that follows.
 * Whoever can inject packets into the network can inject into a connection.
 */
#include <crypto/algapi.h>
#include <crypto/hash.h>
#include <linux/random.h>
#include <linux/timekeeping.h>

#include "fabric.h"

/* Seconds that a challenge is good for, at least. */
#define LITE_EPOCH_SECONDS 16

static const char lite_secret_label[] = "LITE cluster secret 1:";

static u64 lite_epoch(void)
{
	return ktime_get_seconds() / LITE_EPOCH_SECONDS;
}

static struct crypto_shash *lite_hmac_alloc(const u8 *key, size_t len)
{
	struct crypto_shash *tfm = crypto_alloc_shash("hmac(sha256)", 0, 0);
	int err;

	if (IS_ERR(tfm))
		return tfm;
	err = crypto_shash_setkey(tfm, key, len);
	if (err) {
		crypto_free_shash(tfm);
		return ERR_PTR(err);
	}
	return tfm;
}

/**
 * lite_auth_init - take the cluster secret
 * @auth: to fill
 * @secret: of the cluster; the caller wipes it
 * @len: bytes, 0..LITE_SECRET_MAX
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int lite_auth_init(struct lite_auth *auth, const u8 *secret, size_t len)
{
	u8 key[sizeof(lite_secret_label) - 1 + 64];
	const size_t head = sizeof(lite_secret_label) - 1;
	int err = 0;

	if (len > sizeof(key) - head)
		return -EINVAL;
	spin_lock_init(&auth->lock);
	auth->insecure = !len;

	/* Labelled, so that even no secret at all makes a key. */
	memcpy(key, lite_secret_label, head);
	memcpy(key + head, secret, len);
	auth->secret_tfm = lite_hmac_alloc(key, head + len);
	if (IS_ERR(auth->secret_tfm)) {
		err = PTR_ERR(auth->secret_tfm);
		auth->secret_tfm = NULL;
		goto out;
	}
	get_random_bytes(key, 32);
	auth->cookie_tfm = lite_hmac_alloc(key, 32);
	if (IS_ERR(auth->cookie_tfm)) {
		err = PTR_ERR(auth->cookie_tfm);
		auth->cookie_tfm = NULL;
		lite_auth_exit(auth);
	}
out:
	memzero_explicit(key, sizeof(key));
	return err;
}

/**
 * lite_auth_exit - forget the secret
 * @auth: from lite_auth_init(), even if that failed
 */
void lite_auth_exit(struct lite_auth *auth)
{
	if (auth->secret_tfm)
		crypto_free_shash(auth->secret_tfm);
	if (auth->cookie_tfm)
		crypto_free_shash(auth->cookie_tfm);
	auth->secret_tfm = NULL;
	auth->cookie_tfm = NULL;
}

/* HMAC over a label, the responder's address, and two pieces of data. */
static int lite_hmac(struct crypto_shash *tfm, const char *label,
		     const struct sockaddr_storage *responder, const void *a,
		     size_t a_len, const void *b, size_t b_len,
		     u8 out[LITE_MAC_SIZE])
{
	SHASH_DESC_ON_STACK(desc, tfm);
	struct lite_wire_addr addr;
	int err;

	lite_addr_to_wire(&addr, responder);
	desc->tfm = tfm;
	err = crypto_shash_init(desc) ?:
	      crypto_shash_update(desc, label, strlen(label) + 1) ?:
	      crypto_shash_update(desc, (u8 *)&addr, sizeof(addr)) ?:
	      crypto_shash_update(desc, a, a_len) ?:
	      crypto_shash_update(desc, b, b_len) ?:
	      crypto_shash_final(desc, out);
	shash_desc_zero(desc);
	return err;
}

static int lite_auth_cookie(struct lite_auth *auth,
			    const struct sockaddr_storage *responder,
			    const struct lite_cm_hello *hello, u64 epoch,
			    u8 nonce[LITE_NONCE_SIZE])
{
	u8 mac[LITE_MAC_SIZE];
	int err;

	err = lite_hmac(auth->cookie_tfm, "cookie", responder, hello,
			sizeof(*hello), &epoch, sizeof(epoch), mac);
	memcpy(nonce, mac, LITE_NONCE_SIZE);
	return err;
}

static int lite_auth_challenge_mac(struct lite_auth *auth,
				   const struct sockaddr_storage *responder,
				   const struct lite_cm_hello *hello,
				   const struct lite_cm_challenge *ch,
				   u8 mac[LITE_MAC_SIZE])
{
	return lite_hmac(auth->secret_tfm, "challenge", responder, hello,
			 sizeof(*hello), ch, offsetof(struct lite_cm_challenge, mac), mac);
}

/**
 * lite_auth_challenge - answer a hello
 * @auth: ours
 * @responder: address that was dialled
 * @hello: as it came
 * @out: filled in but for its header, which the caller has filled in
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int lite_auth_challenge(struct lite_auth *auth,
			const struct sockaddr_storage *responder,
			const struct lite_cm_hello *hello,
			struct lite_cm_challenge *out)
{
	return lite_auth_cookie(auth, responder, hello, lite_epoch(),
				out->nonce) ?:
	       lite_auth_challenge_mac(auth, responder, hello, out, out->mac);
}

/**
 * lite_auth_check_challenge - does the responder know the secret?
 * @auth: ours
 * @responder: address that was dialled
 * @hello: what we sent
 * @ch: what came back
 *
 * Context: process.
 * Return: 0, -EKEYREJECTED, or another negative errno.
 */
int lite_auth_check_challenge(struct lite_auth *auth,
			      const struct sockaddr_storage *responder,
			      const struct lite_cm_hello *hello,
			      const struct lite_cm_challenge *ch)
{
	u8 mac[LITE_MAC_SIZE];
	int err;

	err = lite_auth_challenge_mac(auth, responder, hello, ch, mac);
	if (!err && crypto_memneq(mac, ch->mac, LITE_MAC_SIZE))
		err = -EKEYREJECTED;
	return err;
}

static int lite_auth_proof(struct lite_auth *auth,
			   const struct sockaddr_storage *responder,
			   const u8 *nonce,
			   const struct lite_cm_connect *connect,
			   u8 mac[LITE_MAC_SIZE])
{
	return lite_hmac(auth->secret_tfm, "connect", responder, connect,
			 offsetof(struct lite_cm_connect, proof), nonce,
			 LITE_NONCE_SIZE, mac);
}

/**
 * lite_auth_prove - answer a challenge
 * @auth: ours
 * @responder: address that was dialled
 * @ch: checked
 * @connect: its proof is filled in, the rest is
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int lite_auth_prove(struct lite_auth *auth,
		    const struct sockaddr_storage *responder,
		    const struct lite_cm_challenge *ch,
		    struct lite_cm_connect *connect)
{
	u8 mac[LITE_MAC_SIZE];
	int err;

	err = lite_auth_proof(auth, responder, ch->nonce, connect, mac);
	memcpy(connect->proof, mac, LITE_PROOF_SIZE);
	return err;
}

/* One nonce, one connection: a recorded CONNECT is worth nothing. */
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
		/* At least 1: 0 marks an entry never used. */
		auth->seen[room].epoch = max_t(u64, now, 1);
	}
	spin_unlock(&auth->lock);
	return err;
}

/**
 * lite_auth_check_connect - does the initiator know the secret?
 * @auth: ours
 * @responder: address that was dialled
 * @connect: as it came
 *
 * Context: process.
 * Return: 0; -EKEYREJECTED: it does not, or its challenge is too old or used;
 * -EBUSY: more connections in one epoch than are remembered.
 */
int lite_auth_check_connect(struct lite_auth *auth,
			    const struct sockaddr_storage *responder,
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
		err = lite_auth_cookie(auth, responder, &hello, epoch - back,
				       nonce) ?:
		      lite_auth_proof(auth, responder, nonce, connect, mac);
		if (err)
			return err;
		if (!crypto_memneq(mac, connect->proof, LITE_PROOF_SIZE))
			return lite_auth_use_nonce(auth, connect->nonce);
	}
	return -EKEYREJECTED;
}

static int lite_auth_accept_mac(struct lite_auth *auth,
				const struct sockaddr_storage *responder,
				const u8 *nonce,
				const struct lite_cm_accept *accept,
				u8 mac[LITE_MAC_SIZE])
{
	return lite_hmac(auth->secret_tfm, "accept", responder, nonce,
			 LITE_NONCE_SIZE, accept, offsetof(struct lite_cm_accept, mac), mac);
}

/**
 * lite_auth_sign_accept - vouch for key and addresses
 * @auth: ours
 * @responder: address that was dialled
 * @nonce: of the initiator
 * @accept: its mac is filled in, the rest is
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int lite_auth_sign_accept(struct lite_auth *auth,
			  const struct sockaddr_storage *responder,
			  const u8 *nonce,
			  struct lite_cm_accept *accept)
{
	return lite_auth_accept_mac(auth, responder, nonce, accept, accept->mac);
}

/**
 * lite_auth_check_accept - are key and addresses those of the responder?
 * @auth: ours
 * @responder: address that was dialled
 * @nonce: of ours
 * @accept: as it came
 *
 * Context: process.
 * Return: 0, -EKEYREJECTED, or another negative errno.
 */
int lite_auth_check_accept(struct lite_auth *auth,
			   const struct sockaddr_storage *responder,
			   const u8 *nonce,
			   const struct lite_cm_accept *accept)
{
	u8 mac[LITE_MAC_SIZE];
	int err;

	err = lite_auth_accept_mac(auth, responder, nonce, accept, mac);
	if (!err && crypto_memneq(mac, accept->mac, LITE_MAC_SIZE))
		err = -EKEYREJECTED;
	return err;
}
