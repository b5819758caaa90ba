### Textes du portail de retours. Chaque message existe dans chaque langue avec les mêmes valeurs.

## Every page

language-name = Français
language-label = Langue :
skip-to-content = Aller au contenu
footer-policy = Conditions de retour
footer-contact = Contact
footer-withdraw = Renoncer au contrat ici
sign-out = Oublier mes commandes sur cet appareil
money = { $currency ->
    [EUR] { $number }{ "\u00A0" }€
    [GBP] { $number }{ "\u00A0" }£GB
    [JPY] { $number }{ "\u00A0" }JPY
    [USD] { $number }{ "\u00A0" }$US
   *[other] { $number }{ "\u00A0" }{ $currency }
}

## Steps

step-number = Étape { $number } sur { $count }
step-find = Recherche
step-choose = Articles
step-instead = Solution
step-method = Envoi
step-check = Contrôle

## Errors

error-start = Retour au début
error-not-found-title = Cette page n’existe pas
error-not-found-text = Vérifiez l’adresse ou utilisez le lien que la boutique vous a envoyé.
error-unavailable-title = Veuillez réessayer dans un instant
error-unavailable-text = Cette page ne peut pas être affichée pour le moment. Rien n’a été modifié.
error-too-many-title = Trop de tentatives
error-too-many-text = { $minutes ->
    [one] Il y a eu trop de tentatives. Veuillez patienter { $minutes } minute, puis réessayer.
   *[other] Il y a eu trop de tentatives. Veuillez patienter { $minutes } minutes, puis réessayer.
}
error-proof-title = Veuillez rechercher à nouveau votre commande
error-proof-text = Commencez par le numéro de votre commande.
error-changed-title = Quelque chose a changé
error-changed-text = Cela n’est plus possible. Rien n’a été enregistré. Revenez en arrière, rechargez la page et vérifiez vos choix.
error-form-title = Cette page n’est plus à jour
error-form-text = Rien n’a été enregistré. Revenez en arrière, rechargez la page et réessayez.
error-internal-title = Une erreur s’est produite
error-internal-text = Rien n’a été enregistré. Veuillez réessayer plus tard.

## Find

find-title = Retourner ou échanger une commande
find-intro = Recherchez votre commande chez { $shop }. Il vous faut le numéro de commande et une information que vous seul connaissez.
find-again = Pour votre sécurité, veuillez rechercher à nouveau votre commande. Vos choix sont conservés.
find-known-order = Vous avez trouvé la commande { $order }.
find-continue = Continuer le retour
find-returns = Mes retours
find-order = Numéro de commande
find-order-hint = Il figure dans l’e-mail de confirmation.
find-order-missing = Saisissez le numéro de commande.
find-by = Comment avez-vous reçu la commande ?
find-by-own = Je l’ai commandée
find-by-gift = C’était un cadeau
find-key-email = Adresse e-mail de la commande
find-key-zip = Code postal de l’adresse de livraison
find-key-both = Adresse e-mail de la commande ou code postal de l’adresse de livraison
find-email-missing = Saisissez l’adresse e-mail de la commande.
find-zip-missing = Saisissez le code postal de l’adresse de livraison.
find-key-missing = Saisissez l’adresse e-mail de la commande ou le code postal de l’adresse de livraison.
find-gift = Code cadeau
find-gift-hint = Douze lettres et chiffres. La personne qui vous a fait le cadeau n’est pas informée du retour.
find-gift-missing = Saisissez le code cadeau.
find-submit = Rechercher la commande
find-wrong = Aucune commande ne correspond à ces informations. Vérifiez le numéro de commande et l’autre champ.
find-link-over = Ce lien ne fonctionne plus. Veuillez rechercher votre commande ici.
