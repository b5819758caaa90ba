### Textos del portal de devoluciones. Cada mensaje existe en cada idioma con los mismos valores.

## Every page

language-name = Español
language-label = Idioma:
skip-to-content = Ir al contenido
footer-policy = Condiciones de devolución
footer-contact = Contacto
footer-withdraw = Desistir del contrato aquí
sign-out = Olvidar mis pedidos en este dispositivo
money = { $currency ->
    [EUR] { $number }{ "\u00A0" }€
    [GBP] { $number }{ "\u00A0" }GBP
    [JPY] { $number }{ "\u00A0" }JPY
    [USD] { $number }{ "\u00A0" }US$
   *[other] { $number }{ "\u00A0" }{ $currency }
}

## Steps

step-number = Paso { $number } de { $count }
step-find = Buscar
step-choose = Artículos
step-instead = Solución
step-method = Envío
step-check = Revisar

## Errors

error-start = Volver al inicio
error-not-found-title = Esta página no existe
error-not-found-text = Compruebe la dirección o use el enlace que le envió la tienda.
error-unavailable-title = Vuelva a intentarlo en un momento
error-unavailable-text = Esta página no se puede mostrar ahora. No se ha cambiado nada.
error-too-many-title = Demasiados intentos
error-too-many-text = { $minutes ->
    [one] Ha habido demasiados intentos. Espere { $minutes } minuto y vuelva a intentarlo.
   *[other] Ha habido demasiados intentos. Espere { $minutes } minutos y vuelva a intentarlo.
}
error-proof-title = Busque de nuevo su pedido
error-proof-text = Empiece por el número de su pedido.
error-changed-title = Algo ha cambiado
error-changed-text = Esto ya no es posible. No se ha guardado nada. Vuelva atrás, recargue la página y revise su selección.
error-form-title = Esta página está desactualizada
error-form-text = No se ha guardado nada. Vuelva atrás, recargue la página e inténtelo de nuevo.
error-internal-title = Algo ha salido mal
error-internal-text = No se ha guardado nada. Vuelva a intentarlo más tarde.

## Find

find-title = Devolver o cambiar un pedido
find-intro = Busque su pedido en { $shop }. Necesita el número de pedido y un dato que solo usted conoce.
find-again = Por su seguridad, busque de nuevo su pedido. Su selección se conserva.
find-known-order = Ha encontrado el pedido { $order }.
find-continue = Continuar con la devolución
find-returns = Mis devoluciones
find-order = Número de pedido
find-order-hint = Está en el correo de confirmación.
find-order-missing = Introduzca el número de pedido.
find-by = ¿Cómo recibió el pedido?
find-by-own = Lo pedí yo
find-by-gift = Fue un regalo
find-key-email = Correo electrónico del pedido
find-key-zip = Código postal de la dirección de entrega
find-key-both = Correo electrónico del pedido o código postal de la dirección de entrega
find-email-missing = Introduzca el correo electrónico del pedido.
find-zip-missing = Introduzca el código postal de la dirección de entrega.
find-key-missing = Introduzca el correo electrónico del pedido o el código postal de la dirección de entrega.
find-gift = Código de regalo
find-gift-hint = Doce letras y cifras. Quien hizo el regalo no se entera de la devolución.
find-gift-missing = Introduzca el código de regalo.
find-submit = Buscar pedido
find-wrong = No se ha encontrado ningún pedido con estos datos. Compruebe el número de pedido y el otro campo.
find-link-over = Este enlace ya no funciona. Busque aquí su pedido.
